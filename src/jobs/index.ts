/** The public names of the job-posting library: `sluice/jobs`. All of it is pure: no clock, no network, no disk. */

export type { Comparable, Comparison, PlainJob } from './match/cluster.ts'
export { compare, isSameJob } from './match/cluster.ts'
export type { Cluster, Clusterable } from './match/cluster-of.ts'
export { clusterOf } from './match/cluster-of.ts'
export type { DriftAlarm } from './match/drift.ts'
export { comparable, DAYS_MIN, driftAlarms, ITEMS_MIN } from './match/drift.ts'
export type { LifecycleEvent, Observation, PostingState, Step } from './match/lifecycle.ts'
export { nextState } from './match/lifecycle.ts'
export type { BoardState, Cycle, CycleVerdict, ListingKind } from './match/listing-cycle.ts'
export { judgeCycle, NEW_BOARD } from './match/listing-cycle.ts'
export type { Quality, QualityReport, Quantiles } from './match/quality.ts'
export { createQuality } from './match/quality.ts'
export type { Search, Seen } from './match/search.ts'
export { isWanted, mayBeWanted, searchArgs } from './match/search.ts'
export { readAssignedJson, readJsonAt } from './read/assigned-json.ts'
export { canonicalUrl } from './read/canonical-url.ts'
export type { PostedDate } from './read/dates.ts'
export { parseEndDate, parsePostedDate } from './read/dates.ts'
export { parseEmploymentType } from './read/employment-type.ts'
export { DESCRIPTION_BYTES_MAX, htmlToText } from './read/html-text.ts'
export { contentHash, jobHash, requisitionKey } from './read/identity.ts'
export { parsePlaces, placeKey } from './read/location.ts'
export { mentionsJobPosting, readJobPostings, readListedUrls } from './read/markup.ts'
export { readXml, type XmlElement } from './read/markup-xml.ts'
export type {
  EmploymentType,
  Interval,
  Place,
  Posting,
  RawPlace,
  RawPosting,
  RawSalary,
  Salary,
  Source,
  Workplace,
} from './read/posting.ts'
export { EMPLOYMENT_TYPES, INTERVALS, postingKey, postingSchema, SOURCES, WORKPLACES } from './read/posting.ts'
export { countryOf } from './read/regions.ts'
export { type BoardAddress, resolveBoard } from './read/resolve-board.ts'
export { findBoards } from './read/resolve-board-in-page.ts'
export { annualSalary, structuredSalary } from './read/salary.ts'
export { parseSalaryText } from './read/salary-text.ts'
export { companyKey, titleKey } from './read/titles.ts'
export { toPosting } from './read/to-posting.ts'
export { workplaceOf } from './read/workplace.ts'
