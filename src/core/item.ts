/** An item: one typed record a handler emitted, checked against the scraper's schema. */
import { hash } from 'node:crypto'

/** A checked item on its way to the commit and from there to the sinks. */
export interface ItemRow {
  /** Identity of the item in the run: the value of the scraper's `key`, else a hash of the whole item. */
  readonly key: string
  /** The item as one line of JSON, fields in schema order. */
  readonly json: string
  /** Hash of `json`: distinguishes a changed item from the same one. If omitted, the frontier computes it. */
  readonly content?: string
}

/** An item the frontier accepted as new, in the order of its log. */
export interface LoggedItem<Item = object> extends ItemRow {
  /** Position in the run's item log; grows by at least 1 from item to item. */
  readonly seq: number
  /** The parsed `json` if the writer still has it, which saves sinks the parsing. */
  readonly value?: Item
}

/** The key of an item whose scraper defines none: two equal records are one item. */
export function contentKey(json: string): string {
  return hash('sha256', json, 'base64url').slice(0, 22) // 128 bits
}
