/** The demo shop's books: every book is a pure function of its number, so that a million of them need no memory. */

/** The part of a book that a listing shows. */
export interface Pod {
  /** 1 … products. Also the number at the end of its path. */
  readonly id: number
  readonly title: string
  /** As printed: "£51.77". */
  readonly price: string
  readonly priceNumeric: number
  /** The class beside `star-rating`: "One" … "Five". */
  readonly rating: RatingWord
  readonly ratingNumeric: number
  /** As printed on a listing; the product page adds the stock: "In stock (22 available)". */
  readonly availability: 'In stock'
  /** From the root of the site, the same on the listing and on the product page: "/media/cache/ab/cd/abcd….jpg". */
  readonly imagePath: string
  /** From the root of the site: "/catalogue/<slug>_<id>/index.html". */
  readonly path: string
}

/** The content of a product page: the exact record a scraper must return. */
export interface Book extends Pod {
  readonly upc: string
  /** 1 … 22. */
  readonly stock: number
  readonly category: string
  /** `null` for the books in `WITHOUT_DESCRIPTION`. White space is already collapsed. */
  readonly description: string | null
}

export const RATINGS = ['One', 'Two', 'Three', 'Four', 'Five'] as const
export type RatingWord = (typeof RATINGS)[number]

/** Books per listing page. */
export const PAGE_SIZE = 20

/** The only two books without a description, whatever the size of the catalogue. */
export const WITHOUT_DESCRIPTION: readonly number[] = [11, 87]

/** The 50 sections of the sidebar. */
export const CATEGORIES =
  'Adventure,Animals,Architecture,Astronomy,Baking,Ballads,Biography,Boats,Botany,Bridges,Chess,Childhood,Cities,Classics,Clockwork,Comedy,Cooking,Crime,Detectives,Drama,Essays,Fables,Fantasy,Folklore,Gardens,Geology,Ghosts,History,Humour,Islands,Letters,Lighthouses,Maps,Memoir,Mountains,Music,Mystery,Novellas,Oceans,Philosophy,Poetry,Puzzles,Railways,Romance,Science,Short Stories,Theatre,Travel,Weather,Young Readers'.split(
    ',',
  )

// Words as "text" or "text=slug" where the slug is not simply the text in lower case. About one title in seven contains something
// outside ASCII: a reader that assumes latin-1 because the charset is missing fails on them.
const words = (list: string) =>
  list.split(',').map((entry) => {
    const [text, slug] = entry.split('=')
    return { text: text!, slug: slug ?? text!.toLowerCase().replaceAll(' ', '-') }
  })

const OPENINGS = words('The,The,The,A,My,Our,One,Last,First,Beyond the,Under the,Notes on the,Return to the')
const QUALITIES = words(
  'Amber,Borrowed,Broken,Careful,Crooked,Distant,Drowned,Early,Empty,Faded,Gentle,Glass,Golden,Hidden,Hollow,Idle,Iron,Little,Long,Lost,Narrow,Northern,Paper,Patient,Plain,Quiet,Restless,Salt,Second,Silent,Silver,Slow,Small,Stubborn,Tall,Unwritten,Velvet,Wandering,Winter,Wooden,Naïve=naive,Café=cafe,Déjà-Vu=deja-vu,Málaga=malaga',
)
const THINGS = words(
  'Almanac,Anchor,Attic,Bakery,Bell,Bridge,Candle,Canal,Cartographer,Clockmaker,Compass,Corridor,Ferry,Fiddler,Garden,Gate,Harbour,Hour,Inkwell,Island,Keeper,Kettle,Ladder,Lantern,Ledger,Library,Lighthouse,Meadow,Mill,Mirror,Orchard,Parade,Postman,Quarry,River,Room,Sluice,Station,Storm,Tailor,Tide,Umbrella,Visitor,Weaver,Window,Señorita=senorita,Fjörd=fjord,Gärtner=gartner',
)
const ENDINGS = words(
  'A Novel,Poems,Stories,A Memoir,Collected Essays,A History in Nine Maps,The Untold Account of a Very Small Town,How We Learned to Wait,Letters from a Slow Boat,A Guide for the Easily Lost,Ten Walks & a Detour=ten-walks-a-detour,The Baker’s Version=the-bakers-version,Where "Nearly" Begins=where-nearly-begins,It\'s Not the Map=its-not-the-map,Łódź to Århus=lodz-to-arhus,東京 Sketches=dong-jing-sketches',
)
const SENTENCES = [
  'Nobody in the valley had asked for a {a} {b}, and yet there it stood on Monday morning.',
  'With patience and a borrowed pencil, the narrator sets out to measure the {a} {b}.',
  'What follows is part inventory, part confession, and entirely about the {b}.',
  'Her brother keeps the {a} {b} under the stairs; her mother keeps asking why.',
  'Twelve chapters, one {b}, and no easy way home.',
  'The town council votes twice on the matter of the {a} {b} and loses the minutes both times.',
  'Readers who liked the earlier volumes will recognise the {b} at once.',
  'There is rain, there is soup, and in the end there is a {a} {b}.',
  'Between the {b} and the sea lies everything he meant to say.',
  'It is a book about waiting, told by a {b} that has plenty of time.',
  'By the last page the {a} {b} has changed hands seven times & nobody has noticed.',
  "She doesn't believe in the {b}, but she oils its hinges every spring.",
  'Critics called it "slow"; the {b} called it Thursday.',
  'This edition restores the {a} drawings and the index of every {b}.',
]
const WIDE_SENTENCES = [
  'The author’s own {b} — a gift from Łódź — appears in every chapter…',
  'À la fin, the {a} {b} écrit une lettre, and nobody answers.',
]

/** 32-bit pseudo-random numbers: mulberry32, small, fast, and the same on every machine. */
function draws(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}

const pick = <T>(list: readonly T[], draw: number): T => list[draw % list.length]!

// `toString(16)` of a number beyond 2³¹ goes through floating point and was a tenth of a page's cost.
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const hex8 = (draw: number) =>
  HEX[draw >>> 24]! + HEX[(draw >>> 16) & 255]! + HEX[(draw >>> 8) & 255]! + HEX[draw & 255]!

/** The listing's view of book `id`. About 1 µs; a listing needs twenty. */
export function podOf(id: number): Pod {
  const next = draws(id)
  const opening = pick(OPENINGS, next())
  const quality = pick(QUALITIES, next())
  const thing = pick(THINGS, next())
  let title = `${opening.text} ${quality.text} ${thing.text}`
  let slug = `${opening.slug}-${quality.slug}-${thing.slug}`
  const form = next() % 8
  if (form < 3) {
    const ending = pick(ENDINGS, next())
    title += `: ${ending.text}`
    slug += `-${ending.slug}`
  } else if (form < 5) {
    const series = pick(THINGS, next())
    const volume = 1 + (next() % 12)
    title += ` (${series.text} Cycle #${volume})`
    slug += `-${series.slug}-cycle-${volume}`
  }
  const pence = 1000 + (next() % 5000)
  const stars = 1 + (next() % 5)
  const image = hex8(next()) + hex8(next())
  return {
    id,
    title,
    price: `£${(pence / 100).toFixed(2)}`,
    priceNumeric: pence / 100,
    rating: RATINGS[stars - 1]!,
    ratingNumeric: stars,
    availability: 'In stock',
    imagePath: `/media/cache/${image.slice(0, 2)}/${image.slice(2, 4)}/${image}.jpg`,
    path: `/catalogue/${slug}_${id}/index.html`,
  }
}

/** The complete record of book `id`. */
export function bookOf(id: number): Book {
  const next = draws(~id)
  return {
    ...podOf(id),
    upc: hex8(next()) + hex8(next()),
    stock: 1 + (next() % 22),
    category: pick(CATEGORIES, next()),
    description: WITHOUT_DESCRIPTION.includes(id) ? null : describe(next),
  }
}

/** 9 to 28 sentences, about 1,400 characters, cut short by "...more" as shops do. */
function describe(next: () => number): string {
  const count = 9 + (next() % 20)
  let text = next() % 4 === 0 ? `${fill(pick(WIDE_SENTENCES, next()), next)} ` : ''
  for (let i = 0; i < count; i++) text += `${fill(pick(SENTENCES, next()), next)} `
  return `${text}...more`
}

function fill(sentence: string, next: () => number): string {
  return sentence
    .replace('{a}', pick(QUALITIES, next()).text.toLowerCase())
    .replace('{b}', pick(THINGS, next()).text.toLowerCase())
}

/** Every book of a catalogue of `products`, in the order of its listings. */
export function* truth(products: number): Generator<Book> {
  for (let id = 1; id <= products; id++) yield bookOf(id)
}

/** How many listing pages `products` books fill; an empty catalogue still has its first page. */
export function pageCount(products: number): number {
  return Math.max(1, Math.ceil(products / PAGE_SIZE))
}
