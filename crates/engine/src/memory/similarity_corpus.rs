//! Pairs of facts as people write them, to test the similarity measure: same and
//! different.

/// Pairs that state the same: either fact could be forgotten without losing anything.
pub(super) const SAME: [(&str, &str); 48] = [
    (
        "Migrations are run by hand before every deploy",
        "Before each deployment somebody runs the migrations manually",
    ),
    (
        "The team meets every Monday morning",
        "There is a team meeting each Monday morning",
    ),
    (
        "Never commit directly to main",
        "Do not push commits straight to the main branch",
    ),
    (
        "Tests must pass before merging",
        "A change is merged only after the tests have passed",
    ),
    (
        "The staging server is slow in the afternoon",
        "In the afternoon, staging is a slow server",
    ),
    ("Customers pay by invoice", "Invoices are how customers pay"),
    (
        "The user prefers short answers",
        "Short answers are what the user likes",
    ),
    (
        "Prefer tabs over spaces for indentation",
        "Indentation is done with tabs rather than spaces",
    ),
    (
        "Logs are kept for a month",
        "We keep the logs for one month",
    ),
    (
        "The database is backed up every night",
        "Every night a backup of the database is made",
    ),
    (
        "Error messages should be written in plain English",
        "Write error messages in simple English",
    ),
    (
        "The API returns dates in UTC",
        "Dates returned by the API are in UTC",
    ),
    (
        "Passwords are hashed with argon2",
        "We hash passwords using argon2",
    ),
    (
        "The frontend is written in TypeScript",
        "TypeScript is what the frontend is written in",
    ),
    ("Deploys happen on Tuesdays", "We deploy on Tuesday"),
    (
        "The cache must be cleared after a release",
        "After releasing, clear the cache",
    ),
    (
        "Feature flags are stored in the config service",
        "The config service holds the feature flags",
    ),
    (
        "Ask before deleting anything",
        "Deleting something needs asking first",
    ),
    (
        "The user is allergic to peanuts",
        "Peanuts cause the user an allergic reaction",
    ),
    (
        "The office is closed on Fridays",
        "On Fridays the office is shut",
    ),
    (
        "All timestamps are stored in UTC",
        "Every timestamp is saved as UTC",
    ),
    (
        "Code reviews need two approvals",
        "Two approvals are needed for a code review",
    ),
    (
        "The build takes ten minutes",
        "It takes ten minutes to build",
    ),
    (
        "Use the shared library for logging",
        "Logging goes through the shared library",
    ),
    (
        "Secrets are kept in Vault",
        "Vault is where secrets are stored",
    ),
    (
        "The monolith will be split into services",
        "We are going to split the monolith into several services",
    ),
    ("The user lives in Berlin", "Berlin is where the user lives"),
    (
        "The user's daughter plays the violin",
        "The daughter of the user plays violin",
    ),
    (
        "The payment provider is Stripe",
        "Stripe handles payments as provider",
    ),
    (
        "Retries use exponential backoff",
        "When retrying we back off exponentially",
    ),
    (
        "The search index is rebuilt every night",
        "Each night we rebuild the search index",
    ),
    (
        "Emails are sent through SendGrid",
        "SendGrid sends our emails",
    ),
    (
        "New endpoints need documentation",
        "Documentation is required for new endpoints",
    ),
    (
        "The mobile app supports offline mode",
        "Offline mode is supported by the mobile app",
    ),
    (
        "The report is due at the end of the quarter",
        "At the end of the quarter the report is due",
    ),
    (
        "Large files go into object storage",
        "Object storage is used for large files",
    ),
    ("The user wants to be called Sam", "Call the user Sam"),
    (
        "The linter runs before every commit",
        "Before each commit the linter is run",
    ),
    (
        "Images are resized on upload",
        "On upload, pictures are resized",
    ),
    (
        "The admin panel is only reachable over the VPN",
        "You can reach the admin panel only through the VPN",
    ),
    (
        "Sessions expire after an hour",
        "After one hour sessions expire",
    ),
    (
        "The queue is processed by three workers",
        "Three workers process the queue",
    ),
    (
        "The customer support team works in shifts",
        "Customer support works shifts as a team",
    ),
    ("Variable names are in English", "Name variables in English"),
    (
        "The landing page was redesigned in spring",
        "In spring we redesigned the landing page",
    ),
    (
        "Use parameterized queries to avoid injection",
        "To avoid injection, queries are parameterized",
    ),
    (
        "The user dislikes long meetings",
        "Long meetings are disliked by the user",
    ),
    (
        "Documentation lives next to the code",
        "The documentation is kept beside the code",
    ),
];

/// Pairs that state different things.
pub(super) const DIFFERENT: [(&str, &str); 56] = [
    (
        "The cache is cleared before a release",
        "The cache is cleared after a release",
    ),
    (
        "Tests are run before merging",
        "Tests are run after merging into the branch",
    ),
    (
        "The user prefers short answers",
        "The user prefers long answers with examples",
    ),
    (
        "Customers pay by invoice",
        "Suppliers are paid by invoice at the end of the month",
    ),
    (
        "The staging database is small",
        "The production database is large",
    ),
    (
        "Backups are made every night",
        "Backups are checked every month by hand",
    ),
    (
        "The frontend is written in TypeScript",
        "The frontend tests are written in TypeScript",
    ),
    (
        "The office is closed on Fridays",
        "The office is open on Fridays until noon",
    ),
    ("Logs are kept for a month", "Metrics are kept for a year"),
    ("The user likes coffee", "The user likes tea with milk"),
    ("The build is slow", "The tests are slow on the old machine"),
    (
        "Passwords are hashed",
        "Passwords are sent by email in plain text",
    ),
    (
        "Errors are written to the log",
        "Errors are shown to the user and counted",
    ),
    (
        "The login page needs a redesign",
        "The settings page needs a redesign and new icons",
    ),
    (
        "Deploys need an approval",
        "Deploys are rolled back without an approval",
    ),
    (
        "The API is versioned in the path",
        "The API is authenticated by a header",
    ),
    (
        "The queue is processed in order",
        "The queue is emptied every night",
    ),
    (
        "The team meets on Monday",
        "The team deploys on Monday in the evening",
    ),
    (
        "Feature flags are on by default",
        "Feature flags are removed after a month",
    ),
    (
        "Use the shared library for logging",
        "Use the shared library for retries and timeouts",
    ),
    (
        "The index is rebuilt every night",
        "The index is kept in memory",
    ),
    (
        "Images are resized on upload",
        "Videos are transcoded in the background",
    ),
    ("The user has a dog", "The user has two cats and a garden"),
    (
        "The user works from home",
        "The user works in the city on weekdays",
    ),
    (
        "The customer wants a refund",
        "The customer wants a discount next time",
    ),
    (
        "Sessions expire after an hour",
        "Invitations expire after a week",
    ),
    (
        "The server runs on Linux",
        "The server is restarted when memory runs out",
    ),
    (
        "The parser is written by hand",
        "The parser fails on very long lines",
    ),
    (
        "Documentation is written in Markdown",
        "Documentation is missing for the billing part",
    ),
    (
        "The importer skips broken lines",
        "The importer stops at the first broken line",
    ),
    (
        "New users get an email",
        "New users get a trial of two weeks",
    ),
    (
        "The search is slow for common words",
        "The search is case sensitive",
    ),
    (
        "The admin can delete users",
        "The admin can see what users do",
    ),
    (
        "The daughter plays the violin",
        "The son plays football at school",
    ),
    (
        "The invoice is sent by email",
        "The receipt is printed at the counter",
    ),
    (
        "The mobile app supports offline mode",
        "The web app supports dark mode",
    ),
    (
        "Code reviews need two approvals",
        "Code is formatted before reviews",
    ),
    (
        "The report is due at the end of the quarter",
        "The report was late in the last quarter",
    ),
    (
        "The database connection is pooled",
        "The database is encrypted on the disk",
    ),
    (
        "Write tests first",
        "Write documentation last, and keep it short",
    ),
    (
        "The cron job runs at night",
        "The cron job fails when the disk is full",
    ),
    (
        "The user is learning Spanish",
        "The user is learning to swim this summer",
    ),
    (
        "Requests are rate limited by address",
        "Requests are logged with the address",
    ),
    (
        "The old service is read only",
        "The new service is written in another language",
    ),
    (
        "Tokens are refreshed silently",
        "Tokens are revoked when a user leaves",
    ),
    (
        "The design uses a dark theme",
        "The design uses large buttons on phones",
    ),
    (
        "The team prefers small changes",
        "The team prefers pair programming for hard problems",
    ),
    (
        "Uploads are scanned for viruses",
        "Uploads are limited in size",
    ),
    (
        "The customer is in another time zone",
        "The customer answers slowly on weekends",
    ),
    (
        "The feature is behind a flag",
        "The feature was removed by mistake",
    ),
    (
        "Caching is disabled in development",
        "Caching is enabled in production",
    ),
    ("Retry failed jobs", "Never retry failed payments"),
    ("The user was born in May", "The user was married in May"),
    (
        "The library is loaded lazily",
        "The library is licensed under the MIT licence",
    ),
    (
        "The meeting is about the budget",
        "The budget was approved in the meeting",
    ),
    (
        "Dogs are allowed in the office",
        "Dogs are not allowed in the kitchen of the office",
    ),
];
