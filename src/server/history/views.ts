/**
 * What each scope last saw of an item. A listing shows fewer fields of a book than its own page: what a scope does not show has
 * not changed to nothing, and what it shows otherwise is no change each time the two take turns.
 */
import { contentKey } from '../../core/item.ts'
import { changesOf, contentOf, type FieldDifference, type Item, isTimeOfReading } from './content.ts'

/** By scope and field: a short text, equal for equal values. Fields without a value are left out. */
type Views = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface Seen {
  item: Item
  content: string
  scopes: string
  /** Undefined when one scope alone has seen it, which saw the item itself. */
  views: Views | undefined
}

/** One that was seen in more scopes than this begins anew with the next. */
export const SCOPES_CHARACTERS_MAX = 400
const VIEWS_CHARACTERS_MAX = 20_000

/** What is known after a scope has seen it, and what of that is a change. */
export function seenIn(scope: string, before: Seen, item: Item, content: string): Seen & { fields: FieldDifference[] } {
  const isSame = before.content === content
  if (before.scopes === scope)
    return { item, content, scopes: scope, views: undefined, fields: isSame ? [] : changesOf(before.item, item) }
  const views = before.views ?? firstView(before)
  const [mine, now] = [views[scope], viewOf(item)]
  const fields = changesOf(before.item, item).filter(({ field, before: was, after: is }) =>
    mine === undefined ? was !== null && is !== null : mine[field] !== now[field],
  )
  if (before.scopes.length > SCOPES_CHARACTERS_MAX && !before.scopes.includes(scope))
    return { item, content, scopes: scope, views: undefined, fields }
  const merged = mergedItem(before.item, item, fields)
  return {
    item: merged,
    content: contentOf(merged),
    scopes: before.scopes.includes(scope) ? before.scopes : `${before.scopes} ${scope}`,
    views: bounded({ ...views, [scope]: now }, scope),
    fields,
  }
}

/** Of a single scope; of several that were not told apart nothing is known. */
const firstView = ({ scopes, item }: Seen): Views => (/\s/.test(scopes) ? {} : { [scopes]: viewOf(item) })

function viewOf(item: Item): Record<string, string> {
  const shown = Object.entries(item).filter(([name, value]) => value != null && !isTimeOfReading(name))
  return Object.fromEntries(shown.map(([name, value]) => [name, contentKey(canonical(value)).slice(0, 10)]))
}

/** Fields in any order are the same value. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** The known fields, with those that changed and those nobody knew as they are now. */
function mergedItem(known: Item, item: Item, fields: readonly FieldDifference[]): Item {
  const changed = new Set(fields.map(({ field }) => field))
  const taken = Object.entries(item).filter(
    ([name]) => changed.has(name) || isTimeOfReading(name) || (known[name] ?? null) === null,
  )
  const kept = Object.entries(known).filter(([name]) => !changed.has(name))
  return Object.fromEntries([...kept, ...taken])
}

/** An item may have any number of fields: of too many only this scope is remembered, or none. */
function bounded(views: Views, scope: string): Views {
  const isFitting = (some: Views) => JSON.stringify(some).length <= VIEWS_CHARACTERS_MAX
  if (isFitting(views)) return views
  const mine = { [scope]: views[scope]! }
  return isFitting(mine) ? mine : {}
}
