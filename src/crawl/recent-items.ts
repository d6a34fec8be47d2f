/** What a worker remembers about its items, to tell a handler right away that it emitted one before. */
import { contentKey, type ItemRow } from '../core/item.ts'
import { LruSet } from '../core/lru-set.ts'
import type { Emitted } from '../core/scraper.ts'

/** 55 bytes for each, twice, allocated at once. */
const KEYS_MAX = 4096

/** Beyond `keysMax` the oldest is forgotten, and if that item comes again it counts as new. */
export function createRecentItems(keysMax: number = KEYS_MAX): (row: ItemRow) => Emitted {
  const keys = new LruSet(keysMax)
  const contents = new LruSet(keysMax)
  return ({ key, json, content = contentKey(json) }) => {
    const isNewContent = contents.add(content)
    if (keys.add(key)) return 'new'
    return isNewContent ? 'changed' : 'same'
  }
}
