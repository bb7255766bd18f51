// SPDX-License-Identifier: Apache-2.0
//! Compares the results of a run with the golden model.

use viaduct_build::{Manifest, Project, Scratch};

use super::input::Input;
use super::routes::Lanes;
use super::{Outcome, Routes, Stage, Values, register_name};
use crate::fail::{Failure, Result, at};
use crate::job::compare;

impl Routes {
    /// The files that a checked run reads, before it begins.
    pub(super) fn read_files(&self) -> Result<Vec<Input>> {
        self.watched.iter().cloned().map(Input::new).collect()
    }

    /// Runs the golden model and compares every output, and the registers that it returns: bytes compared, or the first
    /// difference.
    pub fn check(
        &self,
        project: &Project,
        app: &Manifest,
        values: &Values,
        behind: &[Stage],
        outcome: &Outcome,
    ) -> Result<std::result::Result<u64, String>> {
        let unchanged = || outcome.inputs.iter().try_for_each(Input::check_unchanged);
        unchanged()?;
        let verdict = self.compare(project, app, values, behind, outcome);
        // The model has read them meanwhile.
        unchanged()?;
        verdict
    }

    fn compare(
        &self,
        project: &Project,
        app: &Manifest,
        values: &Values,
        behind: &[Stage],
        outcome: &Outcome,
    ) -> Result<std::result::Result<u64, String>> {
        if let Some(lanes) = &self.lanes {
            return self.check_lanes(lanes, project, app, values);
        }
        let captured = Scratch::new()?;
        let spill = |name: &str, bytes: &[u8]| {
            let path = captured.path().join(name);
            std::fs::write(&path, bytes).map_err(|e| Scratch::lacks(name, &e)).map(|()| path)
        };
        let mut same = 0;
        let mut expected = viaduct_build::run_model(project.root(), app, &self.sources, values)?;
        let mut app = app;
        for (place, stage) in behind.iter().enumerate() {
            // Of the apps in front of the last the registers; their output is the next one's input.
            for name in expected.names().filter(|name| app.register(name).is_some()) {
                let Some(bytes) = outcome.registers.get(&register_name(place, app, name)) else { continue };
                if let Some(expected) = expected.file(name) {
                    match compare::files(&spill(name, bytes)?, expected)? {
                        Ok(bytes) => same += bytes,
                        Err(difference) => return Ok(Err(format!("{} of {}: {difference}", name, app.name))),
                    }
                }
            }
            let output = app.stream_out.first().and_then(|output| expected.file(&output.name));
            let inputs = stage.app.stream_in.iter().zip(output);
            let inputs = inputs.map(|(input, file)| (input.name.clone(), file.to_path_buf())).collect();
            expected = viaduct_build::run_model(project.root(), &stage.app, &inputs, &stage.values)?;
            app = &stage.app;
        }
        let model = |problem: String| {
            Err(Failure::Run(format!("the golden model of {} returned {problem}", app.name)))
        };
        let mut missing: Vec<&str> = app.stream_out.iter().map(|s| s.name.as_str()).collect();
        missing.extend(app.memory.iter().map(|m| m.name.as_str()));
        for name in expected.names() {
            missing.retain(|m| *m != name);
            let message = self.messages.iter().find(|(n, _)| n == name).map(|(_, bytes)| bytes.to_vec());
            let register = outcome.registers.get(&register_name(behind.len(), app, name));
            let got = match (message, self.sinks.get(name), register) {
                (_, Some(path), _) => path.clone(),
                (Some(bytes), ..) => spill(name, &bytes)?,
                (.., Some(bytes)) => spill(name, bytes)?,
                _ => return model(format!("{name:?}, which is neither an output nor a read-only register")),
            };
            let Some(expected) = expected.file(name) else { continue };
            match compare::files(&got, expected)? {
                Ok(bytes) => same += bytes,
                Err(difference) => return Ok(Err(format!("{name}: {difference}"))),
            }
        }
        match missing.first() {
            Some(name) => model(format!("nothing for {name}")),
            None => Ok(Ok(same)),
        }
    }

    /// Runs the golden model on each message and compares the responses.
    fn check_lanes(
        &self,
        lanes: &Lanes,
        project: &Project,
        app: &Manifest,
        values: &Values,
    ) -> Result<std::result::Result<u64, String>> {
        let mut same = 0;
        let captured = Scratch::new()?;
        let captured = captured.path().join("response");
        let mut outputs = Vec::new();
        for (stream, (.., length)) in app.stream_out.iter().zip(&lanes.responses) {
            let bytes = match self.sinks.get(&stream.name) {
                Some(path) => std::fs::read(path).map_err(at(path.display()))?,
                None => self
                    .messages
                    .iter()
                    .find(|(name, _)| *name == stream.name)
                    .map_or_else(Vec::new, |(_, bytes)| bytes.to_vec()),
            };
            outputs.push((&stream.name, bytes, *length as usize));
        }
        for (k, path) in lanes.files.iter().enumerate() {
            let inputs = app.stream_in.iter().map(|stream| (stream.name.clone(), path.clone())).collect();
            let expected = viaduct_build::run_model(project.root(), app, &inputs, values)?;
            for (name, bytes, length) in &outputs {
                let Some(expected) = expected.file(name) else {
                    let app = &app.name;
                    return Err(Failure::Run(format!(
                        "the golden model of {app} returned nothing for {name}"
                    )));
                };
                let response = bytes.get(k * length..(k + 1) * length).unwrap_or_default();
                std::fs::write(&captured, response).map_err(|e| Scratch::lacks(*name, &e))?;
                match compare::files(&captured, expected)? {
                    Ok(bytes) => same += bytes,
                    Err(difference) => return Ok(Err(format!("{}: {name}: {difference}", path.display()))),
                }
            }
        }
        Ok(Ok(same))
    }
}
