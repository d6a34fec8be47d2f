/** Through a pooler in transaction mode, where a session keeps no state, the engine still keeps the contract. */
import { after } from 'node:test'
import { pgbouncerForTests } from '../../../test/services/pgbouncer.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { frontierConformance } from '../conformance.ts'
import { openPostgresFrontier } from './engine.ts'

const database = await postgresForTests()
const pooler = await pgbouncerForTests(database.url)
after(async () => {
  await pooler[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

frontierConformance('postgres: pooled', ({ place, ...options }) =>
  openPostgresFrontier(pooler.url, { runId: place, ...options }),
)
