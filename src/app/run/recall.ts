/** What a worker remembers of its items, to tell a handler at once that it emitted one before. */
import { contentKey, type ItemRow } from '../../core/item.ts'
import { LruSet } from '../../core/lru-set.ts'
import type { Emitted } from '../../core/scraper.ts'

const KEYS_MAX = 4096

export function createRecall(): (row: ItemRow) => Emitted {
  const keys = new LruSet(KEYS_MAX)
  const contents = new LruSet(KEYS_MAX)
  return ({ key, json, content = contentKey(json) }) => {
    const isNewContent = contents.add(content)
    if (keys.add(key)) return 'new'
    return isNewContent ? 'changed' : 'same'
  }
}
