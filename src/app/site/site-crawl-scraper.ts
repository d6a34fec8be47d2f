/** The site crawl as a file, for worker processes: they load a scraper by its path. */
import { siteCrawl } from './site-crawl.ts'

export default siteCrawl('crawl')
