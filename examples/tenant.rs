// SPDX-License-Identifier: Apache-2.0
use std::error::Error;
use std::fs::OpenOptions;
use std::time::Duration;

use viaduct::{Prot, Register};
use viaduct_build::Project;
use viaductd::client::{Client, MapOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, path, updates] = &arguments[..] else {
        return Err("usage: tenant SOCKET TABLE UPDATES".into());
    };

    // Only the descriptions of registers are taken from the project: the daemon loads the app.
    let app = Project::find(".")?.load("gups")?;
    let register = |name: &str| app.register(name).ok_or(format!("the app has no register {name}"));
    let client = Client::connect(socket)?;
    let slot = client.open("gups")?;

    // The program opens the file, and the daemon gets its descriptor.
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mapping = slot.map(&file, file.metadata()?.len(), MapOptions::new(Prot::READ_WRITE))?;
    for (name, value) in [("base", mapping.va()), ("bytes", mapping.len()), ("updates", updates.parse()?)] {
        let register = register(name)?;
        let at = Register { offset: register.offset, width: register.width };
        slot.write_wide(at, &value.to_le_bytes())?;
    }

    let seen = slot.irqs()?;
    slot.write_register(register("start")?.offset, 1)?;
    // The app's page faults are served while the program waits.
    slot.wait_irq(seen, Duration::from_secs(60))?.ok_or("the app does not end")?;
    let errors = slot.read_register(register("errors")?.offset)?;
    mapping.sync(true)?; // what the app has written is in the file, on stable storage
    mapping.unmap()?;
    println!("{errors} errors");
    slot.close()?;
    Ok(())
}
