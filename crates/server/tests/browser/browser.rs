//! A headless browser for tests, driven over WebDriver.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// Timeout for a single step, generous enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A running browser, closed on drop.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    pub(crate) client: Client,
    url: String,
}

/// Opens a browser at a server, or returns from the test if no browser is installed.
macro_rules! browser {
    ($server:expr) => {
        match crate::browser::Browser::open(&$server.url, true).await {
            Some(browser) => browser,
            None => return,
        }
    };
}
pub(crate) use browser;

impl Browser {
    /// Starts a browser, with or without scripts; `None` if no browser is installed.
    pub(crate) async fn open(url: &str, scripts: bool) -> Option<Self> {
        let driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut driver = match driver {
            Ok(driver) => driver,
            Err(error) => {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "chromedriver cannot be run: {error}"
                );
                eprintln!("\nSKIPPED: chromedriver is not installed, so the page was not tested\n");
                return None;
            }
        };
        let out = BufReader::new(driver.stdout.take().unwrap());
        let port = out
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("successfully on port ")?;
                port.trim_end_matches('.').parse().ok()
            })
            .expect("chromedriver did not start");
        let mut capabilities = Capabilities::new();
        let allowed = if scripts { 1 } else { 2 };
        capabilities.insert("goog:loggingPrefs".to_owned(), json!({"browser": "ALL"}));
        capabilities.insert(
            "goog:chromeOptions".to_owned(),
            json!({
                "args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                    "--disable-dev-shm-usage", "--disable-background-networking",
                    "--no-first-run", "--no-proxy-server", "--window-size=1280,900"],
                "prefs": {"profile.managed_default_content_settings.javascript": allowed},
            }),
        );
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("Chromium did not start");
        let session = client.session_id().await.unwrap().unwrap();
        Some(Self {
            driver,
            port,
            session,
            client,
            url: url.to_owned(),
        })
    }

    /// Navigates to a path of the server.
    ///
    /// Retries while Chromium shows a page of its own: it gives up on a load when an interface
    /// of the machine changes (`ERR_NETWORK_CHANGED`), which other tests cause.
    pub(crate) async fn goto(&self, path: &str) {
        for _ in 0..5 {
            self.client
                .goto(&format!("{}{path}", self.url))
                .await
                .unwrap();
            if self.eval("return location.protocol").await != "chrome-error:" {
                return;
            }
        }
        panic!("{path} cannot be loaded");
    }

    /// Runs a script and returns its result.
    pub(crate) async fn eval(&self, script: &str) -> Value {
        let done = self.client.execute(script, Vec::new()).await;
        done.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until a script returns a truthy value, and returns it.
    pub(crate) async fn wait_until(&self, script: &str) -> Value {
        let began = Instant::now();
        loop {
            // While the page changes, there may be nothing to run the script in.
            let found = self.client.execute(script, Vec::new()).await;
            if let Ok(value) = &found
                && !matches!(value, Value::Null | Value::Bool(false))
                && *value != json!(0)
                && *value != json!("")
            {
                return value.clone();
            }
            if began.elapsed() > TIMEOUT {
                let text = self
                    .client
                    .execute("return document.body.innerText", Vec::new())
                    .await;
                panic!(
                    "it never came to: {script}\nlast: {found:?}\n{}\n{text:?}",
                    self.current_path().await
                );
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }

    /// Waits until the page contains a text.
    pub(crate) async fn wait_for_text(&self, text: &str) {
        let text = json!(text);
        self.wait_until(&format!(
            "return document.querySelector('main')?.innerText.includes({text})"
        ))
        .await;
    }

    /// Waits for an element and clicks it.
    pub(crate) async fn click(&self, css: &str) {
        self.retry_on_element(css, async |element| element.click().await)
            .await;
    }

    /// Replaces the content of a field.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        self.retry_on_element(css, async |element| {
            element.clear().await?;
            element.send_keys(text).await
        })
        .await;
    }

    async fn retry_on_element<F>(&self, css: &str, act: F)
    where
        F: AsyncFn(&fantoccini::elements::Element) -> Result<(), fantoccini::error::CmdError>,
    {
        let began = Instant::now();
        loop {
            let done = match self.client.find(Locator::Css(css)).await {
                Ok(element) => {
                    // Scroll it out from under the sticky header.
                    let middle = "arguments[0].scrollIntoView({block: 'center'})";
                    let arguments = vec![serde_json::to_value(&element).unwrap()];
                    let _ = self.client.execute(middle, arguments).await;
                    act(&element).await
                }
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => return,
                // The page may be loading or changing; try again.
                Err(error) if began.elapsed() > TIMEOUT => panic!("{css}: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(40)).await,
            }
        }
    }

    /// Types keys into the focused element.
    pub(crate) async fn type_keys(&self, keys: &str) {
        for key in keys.chars() {
            let active = self.client.active_element().await.unwrap();
            active.send_keys(&key.to_string()).await.unwrap();
        }
    }

    /// Opens a second window and switches to it; returns both handles, the first one first.
    pub(crate) async fn second_window(&self) -> [fantoccini::wd::WindowHandle; 2] {
        let first = self.client.window().await.unwrap();
        let second = self.client.new_window(false).await.unwrap().handle;
        self.client.switch_to_window(second.clone()).await.unwrap();
        [first, second]
    }

    pub(crate) async fn switch(&self, window: &fantoccini::wd::WindowHandle) {
        self.client.switch_to_window(window.clone()).await.unwrap();
    }

    /// The current path.
    pub(crate) async fn current_path(&self) -> String {
        let url = self.client.current_url().await.unwrap().to_string();
        url.strip_prefix(&self.url).unwrap_or(&url).to_owned()
    }

    /// Number of elements that match a selector.
    pub(crate) async fn count(&self, css: &str) -> u64 {
        let count = self
            .eval(&format!(
                "return document.querySelectorAll({}).length",
                json!(css)
            ))
            .await;
        count.as_u64().unwrap()
    }

    /// Errors in the browser's console since the last call, except for missing files.
    pub(crate) async fn console_errors(&self) -> Vec<String> {
        let url = format!(
            "http://127.0.0.1:{}/session/{}/se/log",
            self.port, self.session
        );
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let log = client
            .post(url)
            .json(&json!({"type": "browser"}))
            .send()
            .await
            .unwrap();
        let log: Value = log.json().await.unwrap();
        let lines = log["value"].as_array().unwrap().iter();
        lines
            .filter(|line| line["level"] == "SEVERE")
            .map(|line| line["message"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver closes the browser only on request.
        if let Ok(mut driver) = TcpStream::connect(("127.0.0.1", self.port)) {
            let ask = format!(
                "DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                self.session
            );
            let _ = driver.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = driver.write_all(ask.as_bytes());
            let _ = driver.read(&mut [0; 1_024]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
