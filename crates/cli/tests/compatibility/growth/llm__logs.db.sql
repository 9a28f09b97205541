INSERT INTO conversations (id, name, model) VALUES ('later', 'Later', 'm');
INSERT INTO responses (id, model, prompt, response, conversation_id, datetime_utc)
VALUES ('zz-later', 'm', 'One more question', 'One more answer', 'later', '2026-03-01T10:00:00+00:00');
