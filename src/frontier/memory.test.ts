/** The `memory:` engine keeps the contract, as far as memory can. */
import { frontierConformance } from './conformance.ts'
import { openMemoryFrontier } from './memory.ts'

frontierConformance('memory:', async ({ now }) => openMemoryFrontier({ now }), { cannot: ['durable', 'shared'] })
