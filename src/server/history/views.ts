/**
 * What each scope last saw of an item. A listing shows fewer fields of a book than the book's own page: a field that a scope does
 * not show has not become empty, and one that it shows differently does not change each time the two scopes alternate.
 */
import { contentKey } from '../../core/item.ts'
import { changesOf, contentOf, type FieldDifference, type Item, isTimeOfReading } from './content.ts'

/** By scope and field: a short hash of the value. Fields without a value are omitted. */
type Views = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface Seen {
  item: Item
  content: string
  scopes: string
  /** Undefined if only one scope has seen it: `item` is then its view. */
  views: Views | undefined
}

/** An item seen in more scopes than fit starts over with the next one. */
export const SCOPES_CHARACTERS_MAX = 400
const VIEWS_CHARACTERS_MAX = 20_000

/** The state after a scope has seen the item, and which fields have changed. */
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

/** The view of a single scope; with several scopes it is unknown which one saw what. */
const firstView = ({ scopes, item }: Seen): Views => (/\s/.test(scopes) ? {} : { [scopes]: viewOf(item) })

function viewOf(item: Item): Record<string, string> {
  const shown = Object.entries(item).filter(([name, value]) => value != null && !isTimeOfReading(name))
  return Object.fromEntries(shown.map(([name, value]) => [name, contentKey(canonical(value)).slice(0, 10)]))
}

/** Objects that differ only in field order are equal. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** The known fields, updated with the fields that changed and those that were unknown. */
function mergedItem(known: Item, item: Item, fields: readonly FieldDifference[]): Item {
  const changed = new Set(fields.map(({ field }) => field))
  const taken = Object.entries(item).filter(
    ([name]) => changed.has(name) || isTimeOfReading(name) || (known[name] ?? null) === null,
  )
  const kept = Object.entries(known).filter(([name]) => !changed.has(name))
  return Object.fromEntries([...kept, ...taken])
}

/** An item may have any number of fields: if the views are too large, only that of this scope is kept, or none. */
function bounded(views: Views, scope: string): Views {
  const isFitting = (some: Views) => JSON.stringify(some).length <= VIEWS_CHARACTERS_MAX
  if (isFitting(views)) return views
  const mine = { [scope]: views[scope]! }
  return isFitting(mine) ? mine : {}
}
