/**
 * A scraper that delegates to others: it has their routes under prefixed names (`lever.list`), and calls their handlers with a
 * context in which everything is as in a run of their own. Their start arguments travel in the data of each task.
 */
import { ScrapeError, type Scraper } from 'sluice'

type Args = Readonly<Record<string, unknown>>
type Schema = NonNullable<Scraper['args']>
type Boards = Readonly<Record<string, Scraper>>

/** The parts of a handler's or `start`'s context that are replaced. */
export interface OwnContext {
  readonly args: Args
  readonly data?: Readonly<Record<string, unknown>>
  enqueue(route: string, targets: unknown): Promise<unknown>
}

/** Field in a task's data. */
const BOARD_ARGS = 'boardArgs'

/** Without their patterns: these match paths, not hosts, so one board's would claim the pages of another. */
export function routesOf(boards: Boards): Scraper['routes'] {
  return forEachRoute(boards, (board, route) => {
    const { match: _, ...definition } = board.routes[route]!
    return { ...definition, data: withBoardArgs(definition.data) }
  })
}

export function handlersOf(boards: Boards): Scraper['handlers'] {
  return forEachRoute(boards, (board, route) => (context: OwnContext) => {
    const { [BOARD_ARGS]: boardArgs, ...data } = context.data ?? {}
    return delegateTo(board, route, context, boardArgs as Args, data)
  })
}

/**
 * Calls a board's `start`, or one of its handlers; without `data`, as for a task that has none. `boardArgs` override our own
 * arguments of the same name.
 */
export async function delegateTo(
  board: Scraper,
  route: 'start' | (string & {}),
  context: OwnContext,
  boardArgs: Args,
  data?: object,
): Promise<void> {
  const own: Record<string, unknown> = {
    args: check(board, board.args, { ...namesOf(board.args, context.args), ...boardArgs }),
    data: data ?? check(board, board.routes[route]?.data, {}),
    enqueue: (to: string, targets: unknown) =>
      context.enqueue(
        `${board.name}.${to}`,
        [...asTargets(targets)].map((target) => carrying(target, boardArgs)),
      ),
  }
  // Its getters depend on their receiver, so they are called on the original.
  const seen = new Proxy(context, {
    get: (target, name) => (Object.hasOwn(own, name) ? own[name as string] : Reflect.get(target, name, target)),
  })
  await (route === 'start' ? board.start : board.handlers[route]!)(seen as never)
}

function forEachRoute<T>(boards: Boards, make: (board: Scraper, route: string) => T): Record<string, T> {
  return Object.fromEntries(
    Object.values(boards).flatMap((board) =>
      Object.keys(board.routes).map((route) => [`${board.name}.${route}`, make(board, route)]),
    ),
  )
}

/** Those of our arguments that the board knows. */
function namesOf(schema: Schema | undefined, args: Args): Args {
  const { shape = {} } = (schema ?? {}) as { shape?: object }
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => name in shape && value !== undefined))
}

/** The route's own data, plus the arguments the board was started with. */
function withBoardArgs(schema: Schema | undefined): Schema {
  return {
    '~standard': {
      version: 1,
      vendor: 'sluice',
      validate(value) {
        const { [BOARD_ARGS]: boardArgs, ...data } = value as Record<string, unknown>
        const result = schema?.['~standard'].validate(data) ?? { value: data }
        if (result instanceof Promise || result.issues !== undefined) return result
        return { value: { ...(result.value as object), [BOARD_ARGS]: boardArgs } }
      },
    },
  }
}

function check({ name }: Scraper, schema: Schema | undefined, value: object): unknown {
  const result = schema?.['~standard'].validate(value) ?? { value }
  if (!(result instanceof Promise) && result.issues === undefined) return result.value
  const notes = result instanceof Promise ? [] : (result.issues ?? []).map(({ message }) => message)
  throw new ScrapeError('E_ROUTE_DATA', `"${name}" cannot be started like this`, { notes })
}

function asTargets(targets: unknown): Iterable<unknown> {
  const isOne =
    typeof targets === 'string' ||
    targets instanceof URL ||
    (targets !== null && typeof targets === 'object' && 'url' in targets)
  return isOne ? [targets] : (targets as Iterable<unknown>)
}

function carrying(target: unknown, boardArgs: Args): object {
  const full = typeof target === 'string' || target instanceof URL ? { url: target } : (target as { data?: object })
  return { ...full, data: { ...('data' in full ? full.data : {}), [BOARD_ARGS]: boardArgs } }
}
