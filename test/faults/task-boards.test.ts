/**
 * Job boards that block or change while a worker of the task protocol reads them: the result says so, and never "success, no
 * jobs".
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResultMessage, TaskMessage } from '../../src/protocol/messages.ts'
import { ProtocolRig } from '../protocol/rig.ts'
import type { MockOptions } from '../site/boards/ats-server.ts'
import { startGreenhouseMock } from '../site/boards/greenhouse.ts'

const CAPTCHA = `<html><head><title>example.com</title></head><body><script>var dd={'cid':'x','host':'geo.captcha-delivery.com'}</script>
<script src="https://ct.captcha-delivery.com/c.js"></script></body></html>`

const BOARDS = {
  'asks for patience': { jobs: 3, trouble: (_, asked) => (asked <= 2 ? tooMany('1') : undefined) },
  'never relents': { jobs: 3, trouble: () => tooMany('1') },
  'wants a human': { jobs: 3, trouble: () => ({ body: CAPTCHA }) },
  'is blank': { jobs: 3, trouble: () => ({ body: '' }) },
  'was rebuilt': { jobs: 3, isRenamed: true },
  'breaks halfway': { jobs: 3, trouble: ({ path }) => (path.endsWith('1') ? { status: 500, body: '' } : undefined) },
  'has no openings': { jobs: 0 },
} satisfies Record<string, MockOptions>
type Board = keyof typeof BOARDS

function tooMany(seconds: string) {
  return { status: 429, headers: { 'retry-after': seconds }, body: '' }
}

/** A task for each board, all at once. */
async function resultsOf(rig: ProtocolRig, parts: AsyncDisposableStack): Promise<Record<Board, ResultMessage>> {
  const tasks: [Board, TaskMessage][] = []
  for (const name of Object.keys(BOARDS) as Board[]) {
    const board = parts.use(await startGreenhouseMock(BOARDS[name]))
    const args = { base: undefined, board: 'acme', site: board.url, pay: name === 'breaks halfway' }
    const timeout = name === 'never relents' ? 5 : 600
    tasks.push([name, await rig.put({ args }, { scraper_type: 'greenhouse', timeout, max_retries: 0 })])
  }
  await rig.instance({ rps: 0, retries: 0, robots: 'ignore' }, { scraper: 'greenhouse' })
  const results = await rig.resultsWhen(tasks.length)
  return Object.fromEntries(tasks.map(([name, { task_id }]) => [name, results.get(task_id)!])) as never
}

test('reports in the result whatever a board serves instead of its postings', async () => {
  await using parts = new AsyncDisposableStack()
  await using rig = await ProtocolRig.open()
  const results = await resultsOf(rig, parts)
  const ends = Object.entries(results).map(([name, { status, jobs_found, error_code }]) => [
    name,
    `${status} ${jobs_found} ${error_code}`,
  ])
  assert.deepEqual(Object.fromEntries(ends), {
    'asks for patience': 'success 3 null',
    'never relents': 'timeout 0 E_RATE_LIMITED',
    'wants a human': 'failed 0 E_CAPTCHA',
    'is blank': 'failed 0 E_EMPTY',
    'was rebuilt': 'failed 0 E_ITEM_INVALID',
    'breaks halfway': 'partial 2 E_SERVER',
    'has no openings': 'success 0 null',
  })
  const limited = Object.keys(results).filter((name) => results[name as Board].metadata.rate_limited)
  assert.deepEqual(limited, ['asks for patience', 'never relents'])
  const { captcha_encountered, blocked_requests } = results['wants a human'].metadata
  assert.deepEqual([captcha_encountered, blocked_requests], [true, 1])
  assert.match(results['has no openings'].metadata.warnings.join('\n'), /nothing was found on the 1 pages/)
  const told = (await rig.errors()).map(({ error_code }) => error_code)
  assert.deepEqual(told.sort(), ['E_CAPTCHA', 'E_EMPTY', 'E_ITEM_INVALID', 'E_RATE_LIMITED', 'E_SERVER'])
})
