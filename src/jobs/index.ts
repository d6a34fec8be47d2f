/** `sluice/jobs`: what a job board scraper needs. All functions are pure: no clock, no network, no disk. */
export { isWanted, mayBeWanted, type Search, type Seen, searchArgs } from './match/search.ts'
export { readAssignedJson, readJsonAt } from './read/assigned-json.ts'
export { mentionsJobPosting, readJobPostings, readListedUrls } from './read/markup.ts'
export { readXml, type XmlElement } from './read/markup-xml.ts'
export {
  type Posting,
  postingKey,
  postingSchema,
  type RawPlace,
  type RawPosting,
  type RawSalary,
} from './read/posting.ts'
export { type BoardAddress, resolveBoard } from './read/resolve-board.ts'
export { findBoards } from './read/resolve-board-in-page.ts'
export { toPosting } from './read/to-posting.ts'
