/** `sluice submit` as a user types it: what it accepts, what it rejects, and what it never shows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { taskSchema } from '../../src/protocol/messages.ts'
import { ProtocolRig } from './rig.ts'

test('accepts a time in seconds or as a duration, and sends the proxy with the task without showing its login', async () => {
  await using rig = await ProtocolRig.open()
  const proxy = 'proxy=proxy.test:9:bob:geheim'
  const ways = [
    ['--timeout', '30'],
    ['--timeout', '2m', '--param', 'search_term=2026'],
  ]
  for (const way of ways) {
    const { code, stdout, stderr } = await rig.run('submit', 'things', '--param', proxy, '--json', ...way)
    assert.equal(code, 0, stderr)
    assert.equal(taskSchema.parse(JSON.parse(stdout)).params.proxy, '***@proxy.test:9')
    assert.doesNotMatch(stdout + stderr, /geheim/)
  }
  const entries = await rig.redis.xrange(rig.names.tasks('things')[1], '-', '+')
  const tasks = entries.map(([, [, message]]) => taskSchema.parse(JSON.parse(message!)))
  assert.deepEqual(
    tasks.map(({ timeout, params }) => [timeout, params.proxy, params.search_term]),
    [
      [30, 'proxy.test:9:bob:geheim', undefined],
      [120, 'proxy.test:9:bob:geheim', '2026'],
    ],
  )
})

test('rejects mistakes before anything is on the stream', async () => {
  await using rig = await ProtocolRig.open()
  const slips: [args: string[], message: RegExp][] = [
    [['--timeout', '0'], /--timeout takes seconds, or a time such as 90s/],
    [['--timeout', '500ms'], /--timeout takes seconds/],
    [['--wait', 'long'], /--wait takes seconds/],
    [['--param', 'serch_term=x'], /--param serch_term: no such parameter.*search_term.*--arg name=value/s],
    [['--param', 'proxy:bob:geheim'], /--param takes name=value/],
  ]
  const answers = await Promise.all(slips.map(([args]) => rig.run('submit', 'things', ...args)))
  for (const [i, { code, stderr }] of answers.entries()) {
    assert.equal(code, 2, stderr)
    assert.match(stderr, slips[i]![1])
    assert.doesNotMatch(stderr, /geheim/)
  }
  assert.equal(await rig.redis.exists(rig.names.tasks('things')[1]), 0)
})

test('names an argument that the scraper does not know in the result', async () => {
  await using rig = await ProtocolRig.open()
  await rig.instance()
  const { code, stdout } = await rig.run('submit', 'things', '--arg', 'nosuch=1', '--wait', '20s', '--json')
  const { status, error, error_code } = JSON.parse(stdout)
  assert.deepEqual([code, status, error_code], [1, 'failed', 'E_OPTION'])
  assert.match(error, /arguments of "things" are not usable: nosuch: no such argument \(known: base, n, how\)/)
  assert.match((await rig.errors())[0]!.error_message, /nosuch: no such argument/)
})
