/** The `memory:` engine keeps the contract. */
import { frontierConformance } from './conformance.ts'
import { openMemoryFrontier } from './memory.ts'

frontierConformance('memory:', async ({ now }) => openMemoryFrontier({ now })
