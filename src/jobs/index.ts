/** The public names of the job-posting library: `sluice/jobs`. All of it is pure: no clock, no network, no disk. */
export { readAssignedJson, readJsonAt } from './assigned-json.ts'
export { canonicalUrl } from './canonical-url.ts'
export type { Comparable, Comparison, PlainJob } from './cluster.ts'
export { compare, isSameJob } from './cluster.ts'
export type { Cluster, Clusterable } from './cluster-of.ts'
export { clusterOf } from './cluster-of.ts'
export type { PostedDate } from './dates.ts'
export { parseEndDate, parsePostedDate } from './dates.ts'
export type { DriftAlarm } from './drift.ts'
export { comparable, DAYS_MIN, driftAlarms, ITEMS_MIN } from './drift.ts'
export { parseEmploymentType } from './employment-type.ts'
export { DESCRIPTION_BYTES_MAX, htmlToText } from './html-text.ts'
export { contentHash, jobHash, requisitionKey } from './identity.ts'
export type { LifecycleEvent, Observation, PostingState, Step } from './lifecycle.ts'
export { nextState } from './lifecycle.ts'
export type { BoardState, Cycle, CycleVerdict, ListingKind } from './listing-cycle.ts'
export { judgeCycle, NEW_BOARD } from './listing-cycle.ts'
export { parsePlaces, placeKey } from './location.ts'
export { mentionsJobPosting, readJobPostings, readListedUrls } from './markup.ts'
export { readXml, type XmlElement } from './markup-xml.ts'
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
} from './posting.ts'
export { EMPLOYMENT_TYPES, INTERVALS, postingKey, postingSchema, SOURCES, WORKPLACES } from './posting.ts'
export type { Quality, QualityReport, Quantiles } from './quality.ts'
export { createQuality } from './quality.ts'
export { countryOf } from './regions.ts'
export { type BoardAddress, resolveBoard } from './resolve-board.ts'
export { findBoards } from './resolve-board-in-page.ts'
export { annualSalary, structuredSalary } from './salary.ts'
export { parseSalaryText } from './salary-text.ts'
export type { Search, Seen } from './search.ts'
export { isWanted, mayBeWanted, searchArgs } from './search.ts'
export { companyKey, titleKey } from './titles.ts'
export { toPosting } from './to-posting.ts'
export { workplaceOf } from './workplace.ts'
