/** JSON inside scripts: found after its name, read to its closing bracket, whatever its strings contain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAssignedJson, readJsonAt } from './assigned-json.ts'

const NAME = 'window.data["cards"]'

test('reads to the closing bracket, past brackets, quotes and semicolons in strings', () => {
  const value = { text: 'a "}; </b> {[ \\', list: [{ a: '};' }, ['\\"', '\n']] }
  for (const between of ['=', ' = ', ':', ' :\n\t', ''])
    assert.deepEqual(
      readAssignedJson(`<script>x={};${NAME}${between}${JSON.stringify(value)};y={}</script>`, NAME),
      value,
    )
  assert.deepEqual(readAssignedJson(`${NAME}=[1,[2]]`, NAME), [1, [2]])
})

test('continues after places where the name has no value', () => {
  assert.deepEqual(readAssignedJson(`if (${NAME}) {x} // ${NAME} = {no json}\n${NAME} = {"a":1};`, NAME), { a: 1 })
})

test('returns undefined for missing, truncated or invalid JSON', () => {
  for (const html of [
    '',
    NAME,
    `${NAME} = `,
    `${NAME} = {"a": [1, 2`,
    `${NAME} = {a: 1}`,
    `${NAME} = "text"`,
    `${NAME}={"a":"}`,
  ])
    assert.equal(readAssignedJson(html, NAME), undefined, html)
  assert.equal(readJsonAt('[1]', 5), undefined)
  assert.deepEqual(readJsonAt('x [1] y', 2), { value: [1], end: 5 })
})

test('reads hostile text in one pass per occurrence', () => {
  const deep = '['.repeat(1_000_000)
  assert.equal(readAssignedJson(`${NAME} = ${deep}`, NAME), undefined)
  const many = `${NAME} = {"a":"`.repeat(100_000)
  assert.equal(readAssignedJson(many, NAME), undefined)
})
