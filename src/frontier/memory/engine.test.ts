/** The `memory:` engine keeps the contract, as far as memory allows. */
import { frontierConformance } from '../conformance.ts'
import { openMemoryFrontier } from './engine.ts'

frontierConformance('memory:', async ({ now }) => openMemoryFrontier({ now }), { cannot: ['durable', 'shared'] })
