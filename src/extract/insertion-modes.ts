/** The insertion modes of tree construction, and what is read after a start tag. */
/** What the lexer reads next. */
export const DATA = 0
export const RCDATA = 1
export const RAW = 2
export const SCRIPT = 3
export const PLAINTEXT = 4

// Up to LAST_PLAIN, text needs no decision: it goes where it stands.
export const IN_BODY = 0
export const IN_CELL = 1
export const IN_CAPTION = 2
export const IN_SELECT = 3
export const IN_SELECT_IN_TABLE = 4
export const LAST_PLAIN = 4
export const INITIAL = 5
export const BEFORE_HTML = 6
export const BEFORE_HEAD = 7
// From here on, white space stays where it is.
export const IN_HEAD = 8
export const IN_HEAD_NOSCRIPT = 9
export const AFTER_HEAD = 10
export const IN_TABLE = 11
export const IN_COLUMN_GROUP = 12
export const IN_TABLE_BODY = 13
export const IN_ROW = 14
export const IN_TEMPLATE = 15
export const AFTER_BODY = 16
export const IN_FRAMESET = 17
export const AFTER_FRAMESET = 18
export const AFTER_AFTER_BODY = 19
export const AFTER_AFTER_FRAMESET = 20
