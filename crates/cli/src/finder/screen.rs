//! Draws the finder and handles its keys: query, list and preview.

use std::time::Duration;

use anyhow::Result;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};
use ratatui::{DefaultTerminal, Frame};
use unicode_width::UnicodeWidthStr;

use super::{FinderAction, FinderSource, Row};
use crate::ui::truncate;

/// How long to wait for a key before other work continues.
const POLL_INTERVAL: Duration = Duration::from_millis(30);
/// Minimum width for showing the preview beside the list.
const SIDE_BY_SIDE_COLUMNS: u16 = 100;

/// The state of the screen.
#[derive(Default)]
struct ScreenState {
    typed: String,
    rows: Vec<Row>,
    selection: ListState,
    preview: String,
    scroll: u16,
}

/// The action of a key.
enum KeyAction {
    Edited,
    Moved,
    Choose(FinderAction),
    Cancel,
    Ignored,
}

pub(super) async fn run(source: &mut impl FinderSource) -> Result<Option<FinderAction>> {
    let mut terminal = ratatui::try_init()?;
    let chosen = run_loop(&mut terminal, source).await;
    ratatui::try_restore()?;
    chosen
}

async fn run_loop(
    terminal: &mut DefaultTerminal,
    source: &mut impl FinderSource,
) -> Result<Option<FinderAction>> {
    let mut state = ScreenState::default();
    update_rows(&mut state, source).await?;
    loop {
        terminal.draw(|frame| draw(frame, &mut state, source.key_help()))?;
        if !event::poll(POLL_INTERVAL)? {
            tokio::task::yield_now().await;
            continue;
        }
        let mut typed = false;
        let mut moved = false;
        // Several quick keys cause one search.
        loop {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.handle_key(key)
                {
                    KeyAction::Edited => typed = true,
                    KeyAction::Moved => moved = true,
                    KeyAction::Choose(chosen) => return Ok(Some(chosen)),
                    KeyAction::Cancel => return Ok(None),
                    KeyAction::Ignored => {}
                },
                _ => {}
            }
            if !event::poll(Duration::ZERO)? {
                break;
            }
        }
        if typed {
            update_rows(&mut state, source).await?;
        } else if moved {
            update_preview(&mut state, source).await?;
        }
    }
}

async fn update_rows(state: &mut ScreenState, source: &mut impl FinderSource) -> Result<()> {
    state.rows = source.find(&state.typed).await?;
    state
        .selection
        .select((!state.rows.is_empty()).then_some(0));
    update_preview(state, source).await
}

async fn update_preview(state: &mut ScreenState, source: &mut impl FinderSource) -> Result<()> {
    state.scroll = 0;
    state.preview = match state.selection.selected() {
        Some(row) => source.preview(row, preview_width()).await?,
        None => String::new(),
    };
    Ok(())
}

fn preview_width() -> usize {
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| width.0);
    let columns = if columns >= SIDE_BY_SIDE_COLUMNS {
        columns / 2
    } else {
        columns
    };
    usize::from(columns.saturating_sub(4)).max(20)
}

impl ScreenState {
    fn handle_key(&mut self, key: KeyEvent) -> KeyAction {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let row = self.selection.selected();
        match (key.code, control) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'd' | 'q'), true) => KeyAction::Cancel,
            (KeyCode::Enter, _) => row.map_or(KeyAction::Ignored, |row| {
                KeyAction::Choose(FinderAction::Open(row))
            }),
            (KeyCode::Char('f'), true) => row.map_or(KeyAction::Ignored, |row| {
                KeyAction::Choose(FinderAction::Fork(row))
            }),
            (KeyCode::Char('s'), true) => row.map_or(KeyAction::Ignored, |row| {
                KeyAction::Choose(FinderAction::Show(row))
            }),
            (KeyCode::Up, _) | (KeyCode::Char('p' | 'k'), true) => self.move_selection(-1),
            (KeyCode::Down, _) | (KeyCode::Char('n' | 'j'), true) => self.move_selection(1),
            (KeyCode::PageUp, _) => {
                self.scroll = self.scroll.saturating_sub(10);
                KeyAction::Ignored
            }
            (KeyCode::PageDown, _) => {
                self.scroll = self.scroll.saturating_add(10);
                KeyAction::Ignored
            }
            (KeyCode::Char('u'), true) => {
                self.typed.clear();
                KeyAction::Edited
            }
            (KeyCode::Backspace, _) => {
                self.typed.pop();
                KeyAction::Edited
            }
            (KeyCode::Char(c), false) => {
                self.typed.push(c);
                KeyAction::Edited
            }
            _ => KeyAction::Ignored,
        }
    }

    fn move_selection(&mut self, step: isize) -> KeyAction {
        let last = self.rows.len().saturating_sub(1);
        let Some(at) = self.selection.selected() else {
            return KeyAction::Ignored;
        };
        self.selection
            .select(Some(at.saturating_add_signed(step).min(last)));
        KeyAction::Moved
    }
}

fn draw(frame: &mut Frame<'_>, state: &mut ScreenState, keys: &str) {
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
    let [list, preview] = if middle.width >= SIDE_BY_SIDE_COLUMNS {
        Layout::horizontal(halves).areas(middle)
    } else {
        Layout::vertical(halves).areas(middle)
    };
    let columns = usize::from(list.width.saturating_sub(2));
    let items = state.rows.iter().map(|row| render_item(row, columns, dim));
    let items = List::new(items)
        .highlight_symbol("▌ ")
        .highlight_style(Style::new().add_modifier(Modifier::BOLD));
    frame.render_stateful_widget(items, list, &mut state.selection);

    let text = if state.rows.is_empty() {
        "no matches"
    } else {
        &state.preview
    };
    let border = if middle.width >= SIDE_BY_SIDE_COLUMNS {
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
    let found = truncate(&found, usize::from(bottom.width));
    frame.render_widget(Paragraph::new(found).style(dim), bottom);
}

fn render_item<'a>(row: &Row, columns: usize, dim: Style) -> ListItem<'a> {
    let detail = truncate(&row.detail, columns / 2);
    let room = columns.saturating_sub(detail.width() + 2);
    let title = truncate(&row.title, room);
    let gap = columns.saturating_sub(title.width() + detail.width());
    ListItem::new(Line::from(vec![
        Span::raw(title),
        Span::raw(" ".repeat(gap)),
        Span::styled(detail, dim),
    ]))
}
