/** The public names. */
export { ScrapeError } from './core/errors.ts'
export { csv, defineScraper, jsonl, parquet, sqlite } from './core/scraper.ts'
