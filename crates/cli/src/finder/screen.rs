//! The screen: what is typed, the list, the preview.

use std::time::Duration;

use anyhow::Result;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};
use ratatui::{DefaultTerminal, Frame};
use unicode_width::UnicodeWidthStr;

use super::{Chosen, Row, Source};
use crate::ui::fit;

/// How long a key is waited for before anything else gets its turn.
const TICK: Duration = Duration::from_millis(30);
/// From how many columns on the preview stands beside the list.
const WIDE: u16 = 100;

/// What the screen shows.
#[derive(Default)]
struct State {
    typed: String,
    rows: Vec<Row>,
    at: ListState,
    preview: String,
    scroll: u16,
}

/// What a key means.
enum Key {
    Type,
    Move,
    Choose(Chosen),
    Leave,
    Nothing,
}

pub(super) async fn run(source: &mut impl Source) -> Result<Option<Chosen>> {
    let mut terminal = ratatui::try_init()?;
    let chosen = choose(&mut terminal, source).await;
    ratatui::try_restore()?;
    chosen
}

async fn choose(
    terminal: &mut DefaultTerminal,
    source: &mut impl Source,
) -> Result<Option<Chosen>> {
    let mut state = State::default();
    search(&mut state, source).await?;
    loop {
        terminal.draw(|frame| draw(frame, &mut state, source.keys()))?;
        if !event::poll(TICK)? {
            tokio::task::yield_now().await;
            continue;
        }
        let mut typed = false;
        let mut moved = false;
        // Whoever types quickly is searched for once.
        loop {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.key(key) {
                    Key::Type => typed = true,
                    Key::Move => moved = true,
                    Key::Choose(chosen) => return Ok(Some(chosen)),
                    Key::Leave => return Ok(None),
                    Key::Nothing => {}
                },
                _ => {}
            }
            if !event::poll(Duration::ZERO)? {
                break;
            }
        }
        if typed {
            search(&mut state, source).await?;
        } else if moved {
            look(&mut state, source).await?;
        }
    }
}

async fn search(state: &mut State, source: &mut impl Source) -> Result<()> {
    state.rows = source.find(&state.typed).await?;
    state.at.select((!state.rows.is_empty()).then_some(0));
    look(state, source).await
}

async fn look(state: &mut State, source: &mut impl Source) -> Result<()> {
    state.scroll = 0;
    state.preview = match state.at.selected() {
        Some(row) => source.preview(row, preview_width()).await?,
        None => String::new(),
    };
    Ok(())
}

fn preview_width() -> usize {
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| width.0);
    let columns = if columns >= WIDE {
        columns / 2
    } else {
        columns
    };
    usize::from(columns.saturating_sub(4)).max(20)
}

impl State {
    fn key(&mut self, key: KeyEvent) -> Key {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let row = self.at.selected();
        match (key.code, control) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'd' | 'q'), true) => Key::Leave,
            (KeyCode::Enter, _) => row.map_or(Key::Nothing, |row| Key::Choose(Chosen::Open(row))),
            (KeyCode::Char('f'), true) => {
                row.map_or(Key::Nothing, |row| Key::Choose(Chosen::Fork(row)))
            }
            (KeyCode::Char('s'), true) => {
                row.map_or(Key::Nothing, |row| Key::Choose(Chosen::Show(row)))
            }
            (KeyCode::Up, _) | (KeyCode::Char('p' | 'k'), true) => self.by(-1),
            (KeyCode::Down, _) | (KeyCode::Char('n' | 'j'), true) => self.by(1),
            (KeyCode::PageUp, _) => {
                self.scroll = self.scroll.saturating_sub(10);
                Key::Nothing
            }
            (KeyCode::PageDown, _) => {
                self.scroll = self.scroll.saturating_add(10);
                Key::Nothing
            }
            (KeyCode::Char('u'), true) => {
                self.typed.clear();
                Key::Type
            }
            (KeyCode::Backspace, _) => {
                self.typed.pop();
                Key::Type
            }
            (KeyCode::Char(c), false) => {
                self.typed.push(c);
                Key::Type
            }
            _ => Key::Nothing,
        }
    }

    fn by(&mut self, step: isize) -> Key {
        let last = self.rows.len().saturating_sub(1);
        let Some(at) = self.at.selected() else {
            return Key::Nothing;
        };
        self.at
            .select(Some(at.saturating_add_signed(step).min(last)));
        Key::Move
    }
}

fn draw(frame: &mut Frame<'_>, state: &mut State, keys: &str) {
    let dim = Style::new().add_modifier(Modifier::DIM);
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let prompt = "› ";
    let line = Line::from(vec![Span::styled(prompt, dim), Span::raw(&state.typed)]);
    frame.render_widget(Paragraph::new(line), top);
    let column = (prompt.width() + state.typed.width()).min(usize::from(top.width.max(1)) - 1);
    frame.set_cursor_position((u16::try_from(column).unwrap_or(0), top.y));

    let halves = [Constraint::Percentage(50), Constraint::Percentage(50)];
    let [list, preview] = if middle.width >= WIDE {
        Layout::horizontal(halves).areas(middle)
    } else {
        Layout::vertical(halves).areas(middle)
    };
    let columns = usize::from(list.width.saturating_sub(2));
    let items = state.rows.iter().map(|row| item(row, columns, dim));
    let items = List::new(items)
        .highlight_symbol("▌ ")
        .highlight_style(Style::new().add_modifier(Modifier::BOLD));
    frame.render_stateful_widget(items, list, &mut state.at);

    let text = if state.rows.is_empty() {
        "nothing fits"
    } else {
        &state.preview
    };
    let border = if middle.width >= WIDE {
        Borders::LEFT
    } else {
        Borders::TOP
    };
    let shown = Paragraph::new(text)
        .wrap(Wrap { trim: false })
        .scroll((state.scroll, 0))
        .block(Block::new().borders(border).border_style(dim));
    frame.render_widget(shown, preview);
    let found = format!("{} · {keys}", state.rows.len());
    let found = fit(&found, usize::from(bottom.width));
    frame.render_widget(Paragraph::new(found).style(dim), bottom);
}

fn item<'a>(row: &Row, columns: usize, dim: Style) -> ListItem<'a> {
    let detail = fit(&row.detail, columns / 2);
    let room = columns.saturating_sub(detail.width() + 2);
    let title = fit(&row.title, room);
    let gap = columns.saturating_sub(title.width() + detail.width());
    ListItem::new(Line::from(vec![
        Span::raw(title),
        Span::raw(" ".repeat(gap)),
        Span::styled(detail, dim),
    ]))
}
