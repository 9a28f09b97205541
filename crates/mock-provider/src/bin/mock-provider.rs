//! The mock provider as a standalone program.
//!
//! `mock-provider [--listen HOST:PORT] [--script FILE.json] [--key KEY]` prints its address
//! and serves until it is killed.

use std::error::Error;
use std::process::ExitCode;

use throughline_mock_provider::{MockProvider, Script};

const USAGE: &str = "usage: mock-provider [--listen HOST:PORT] [--script FILE.json] [--key KEY]";

fn main() -> ExitCode {
    match start_from_args() {
        Ok(provider) => {
            println!("{}", provider.url());
            provider.wait();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("mock-provider: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start_from_args() -> Result<MockProvider, Box<dyn Error>> {
    let mut listen = "127.0.0.1:0".to_owned();
    let mut script = Script::default();
    let mut key = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match flag.as_str() {
            "--listen" => listen = value,
            "--script" => script = Script::parse(&std::fs::read_to_string(value)?)?,
            "--key" => key = Some(value),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(MockProvider::listen(listen.parse()?, script, key)?)
}
