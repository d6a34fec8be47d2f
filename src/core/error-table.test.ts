import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { API_ERRORS, ERRORS, EVERY_ERROR } from './error-table.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** Quoted codes anywhere in the product. */
function usedCodes(): Map<string, string> {
  const files = globSync(['src/**/*.{ts,js}', 'scrapers/**/*.ts'], { cwd: ROOT })
  const product = files.filter((file) => !/\.test|error-table\.ts$/.test(file))
  assert.ok(product.length > 500)
  return new Map(
    product.flatMap((file) =>
      [...readFileSync(join(ROOT, file), 'utf8').matchAll(/['"`](E_[A-Z][A-Z_]+)['"`]/g)].map(
        ({ 1: code }) => [code!, file] as const,
      ),
    ),
  )
}

test('lists every code in use, and no code that is not in use', () => {
  const used = usedCodes()
  assert.deepEqual(
    [...used].filter(([code]) => !Object.hasOwn(EVERY_ERROR, code)),
    [],
  )
  assert.deepEqual(
    Object.keys(EVERY_ERROR).filter((code) => !used.has(code)),
    [],
  )
})

test('has no code in both tables', () => {
  assert.equal(Object.keys(EVERY_ERROR).length, Object.keys(ERRORS).length + Object.keys(API_ERRORS).length)
})
