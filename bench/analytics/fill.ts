/** Millions of jobs and observations, generated inside the database. */
import { Client } from 'pg'

export interface Sizes {
  jobs: number
  observations: number
  days: number
}

const COMPANIES = 5000
const LOCATIONS = 500

/** The observations end today, so that the last day is the part that is counted on demand. */
export async function fill(url: string, { jobs, observations, days }: Sizes): Promise<void> {
  const start = `(date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - interval '${days - 1} days')`
  const db = new Client({ connectionString: url }) // without a timeout
  await db.connect()
  for (const table of ['job_observation', 'job_event'])
    await db.query(`select sluice.ensure_partitions('${table}', ${start}, ${Math.ceil(days / 7) + 3})`)
  const kind = `case n % 4 when 0 then 'part_time' when 1 then null else 'full_time' end`
  const place = `case n % 5 when 0 then 'remote' when 1 then 'hybrid' else null end`
  const source = `(array['greenhouse', 'lever', 'ashby', 'workday', 'linkedin', 'indeed'])[1 + n % 6]`
  const pay = `case when n % 3 = 0 then 40000 + (n * 7919) % 120000 end`
  const currency = `case when n % 3 = 0 then (array['USD', 'EUR', 'GBP'])[1 + n % 7 % 3] end`
  const counted = `${source}, 1 + n % ${COMPANIES}, ${kind}, ${place}, ${pay}, ${pay} + 20000, ${currency}`
  const firstDay = `((n * 31) % ${days})`
  const statements = [
    `insert into sluice.company (key, name, first_seen_at, last_seen_at)
     select 'company' || n, 'Company ' || n, ${start}, now() from generate_series(1, ${COMPANIES}) n`,
    `insert into sluice.location (key, name, city, country_iso2, search)
     select 'city' || n || '||DE', 'City ' || n || ', DE', 'City ' || n, 'DE', 'city ' || n || ' de' from generate_series(1, ${LOCATIONS}) n`,
    `insert into sluice.job (key, company_id, title, preferred_key, employment_type, workplace, salary_annual_min,
       salary_annual_max, currency, status, first_seen_at, last_seen_at, summary, search)
     select 'k' || n, 1 + n % ${COMPANIES}, 'Engineer ' || n, 'k' || n, ${kind}, ${place}, ${pay}, ${pay} + 20000, ${currency},
       case when n % 4 = 0 then 'gone' else 'active' end, ${start} + ${firstDay} * interval '1 day', now(),
       '{"title":"Engineer ' || n || '","locations":[]}',
       'Engineer ' || n || ' of ' || (array['rust', 'go', 'java', 'nursing', 'logistics'])[1 + n % 5] || ' ' || ${TEXT}
     from generate_series(1, ${jobs}) n`,
    `insert into sluice.job_location (location_id, job_id) select 1 + (n * 13) % ${LOCATIONS}, n from generate_series(1, ${jobs}) n`,
    `insert into sluice.job_metric select n, 10, case when n % 10 = 0 then 2 else 1 end, 10, 0, 0 from generate_series(1, ${jobs}) n`,
    `insert into sluice.job_source (key, job_id, source, board_token, scraper, run_id, status, state, posting, job_url, first_seen_at, last_seen_at)
     select 'k' || n, n, ${source}, 'b', 's', 'r', 'active', '{}', '{"description_text":null}', 'https://x.example', ${start}, now()
     from generate_series(1, ${jobs}) n`,
    `insert into sluice.job_observation (observed_at, job_id, source, company_id, employment_type, workplace, salary_min,
       salary_max, currency, sources, filled, problems, content_hash)
     select ${start} + ((${firstDay} + (m / ${jobs})) % ${days}) * interval '1 day' + (m % 80000) * interval '1 second', n, ${counted},
       case when n % 10 = 0 then 2 else 1 end, case when n % 3 = 0 then 255 else 127 end, (n % 50 = 0)::int, md5(n::text)
     from (select m, 1 + m % ${jobs} as n from generate_series(0, ${observations} - 1) m) made order by 1 on conflict do nothing`,
    `insert into sluice.job_event (happened_at, job_id, type, source, company_id, employment_type, workplace, salary_min, salary_max, currency)
     select ${start} + ${firstDay} * interval '1 day', n, 'created', ${counted} from generate_series(1, ${jobs}) n`,
    `insert into sluice.job_event (happened_at, job_id, type, source, company_id, employment_type, workplace, salary_min, salary_max, currency)
     select ${start} + ((${firstDay} + 10) % ${days}) * interval '1 day', n, 'gone', ${counted} from generate_series(1, ${jobs}) n where n % 4 = 0`,
    `insert into sluice.rollup_dirty (rollup, bucket)
     select rollup, at::date from sluice.rollup_watermark, generate_series(${start}, now(), interval '1 day') at`,
  ]
  for (const statement of statements) await db.query(statement)
  await db.query('vacuum analyze')
  await db.end()
}

/** About the size of a posting's text. */
const TEXT = `repeat('You build and run services that customers depend on. ', 5)`
