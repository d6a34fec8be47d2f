import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MESSAGE_BYTES_MAX, readMessage, resultSchema, taskSchema } from './messages.ts'

/** As the first producers of this protocol write it. */
const TASK = {
  task_id: '7d9f6a1e-6f0b-4c55-9f53-0a7b5b1c2d3e',
  scraper_type: 'indeed',
  params: {
    search_term: 'software engineer',
    location: 'San Francisco, CA',
    results_wanted: 50,
    proxy: 'user:pass@proxy:8080',
    user_agent: 'Mozilla/5.0',
    delay_range: [1, 3],
  },
  created_at: '2024-01-01T00:00:00Z',
  timeout: 300,
  retry_count: 0,
  max_retries: 3,
}

const RESULT = {
  task_id: TASK.task_id,
  status: 'success',
  scraper_type: 'indeed',
  execution_time: 45.2,
  jobs_found: 1,
  jobs_data: [
    {
      title: 'Software Engineer',
      company: 'Example Corp',
      location: 'San Francisco, CA',
      salary_min: 120_000,
      salary_max: 180_000,
      job_url: 'https://jobs.example/1',
      description: '…',
      posted_date: '2024-01-01',
      job_hash: 'sha256_hash',
    },
  ],
  metadata: { proxy_used: 'proxy1:8080', requests_made: 15, rate_limited: false, captcha_encountered: false },
  completed_at: '2024-01-01T00:05:45Z',
  error: null,
}

const read = (value: unknown) => readMessage(taskSchema, JSON.stringify(value), MESSAGE_BYTES_MAX.task)
const reasonOf = (value: unknown) => {
  const answer = read(value)
  return answer.ok ? undefined : answer.reason
}

test('reads a task and a result as other programs write them, without a version', () => {
  const task = read(TASK)
  assert.ok(task.ok)
  assert.deepEqual(
    { ...task.value, version: undefined, priority: undefined },
    { ...TASK, version: undefined, priority: undefined },
  )
  assert.deepEqual([task.value.version, task.value.priority], [1, 0])
  const result = readMessage(resultSchema, JSON.stringify(RESULT), MESSAGE_BYTES_MAX.result)
  assert.ok(result.ok)
  assert.deepEqual([result.value.attempt, result.value.jobs_data[0]!.skills], [1, []])
})

test('fills in what a minimal task leaves out', () => {
  const { task_id, scraper_type, created_at } = TASK
  const short = read({ task_id, scraper_type, created_at })
  assert.ok(short.ok)
  assert.deepEqual([short.value.timeout, short.value.max_retries, short.value.params], [300, 3, {}])
})

test('refuses unreadable messages of any kind, and says why', () => {
  assert.match(reasonOf({ ...TASK, version: 2 })!, /version 2; version 1 is spoken here/)
  assert.match(reasonOf({ ...TASK, task_id: 7 })!, /task_id/)
  assert.match(reasonOf({ ...TASK, timeout: -1 })!, /timeout/)
  assert.match(reasonOf({ ...TASK, scraper_type: 'a:b' })!, /name of a scraper/)
  assert.match(reasonOf({ ...TASK, params: { delay_range: [1] } })!, /delay_range/)
  for (const odd of [null, [], 'text', 7, { version: { a: 1 } }, { version: null, params: [] }])
    assert.ok(reasonOf(odd), String(odd))
  const texts = [undefined, '', '{', `{"a":${'['.repeat(60_000)}`, '\u0000']
  for (const text of texts) assert.equal(readMessage(taskSchema, text, MESSAGE_BYTES_MAX.task).ok, false)
})

test('limits the size of a message in bytes, not characters', () => {
  const answer = readMessage(taskSchema, JSON.stringify({ ...TASK, note: 'é'.repeat(40_000) }), MESSAGE_BYTES_MAX.task)
  assert.match(answer.ok ? '' : answer.reason, /over the limit of 65536/)
})
