import { Schema } from "effect"

const filterToken = /^(\*|[A-Za-z0-9_-]{1,64})$/
const typeToken = /^[A-Za-z0-9_-]{1,64}$/

/** What the types of Petrel's own events begin with. */
const ownToken = "petrel"

/** The type of the events made of alerts of a name, or with `>` of all. */
export const alertType = (name: string): string => `${ownToken}.alert.${name}`

/** True for a type of Petrel's own events, and for a filter that asks for them. */
export const isOwnType = (type: string): boolean =>
  type === ownToken || type.startsWith(`${ownToken}.`)

/** What is wrong with the type of an event that somebody publishes (`invoice.paid`), or undefined. */
export const eventTypeProblem = (type: string): string | undefined =>
  isOwnType(type)
    ? `types whose first token is ${ownToken} belong to Petrel's own events: choose another`
    : typeTextProblem(type)

/** What is wrong with the type of one of Petrel's own events (`petrel.alert.success-low`), or undefined. */
export const ownTypeProblem = (type: string): string | undefined =>
  isOwnType(type) ? typeTextProblem(type) : `the type is none of Petrel's own events`

const typeTextProblem = (type: string): string | undefined => {
  if (type === "") return "the type is missing"
  if (type.length > 200) return "the type is longer than 200 characters"
  const odd = type.split(".").find((token) => !typeToken.test(token))
  if (odd === undefined) return undefined
  return `the type's token ${JSON.stringify(odd.slice(0, 80))} must be 1 to 64 letters, digits, - or _`
}

/** Event types as a NATS wildcard: tokens separated by dots, `*` for one token, a last `>` for the rest. */
export const TypeFilter = Schema.String.check(
  Schema.makeFilter((filter: string) => {
    const tokens = filter.split(".")
    const last = tokens.at(-1)
    const body = last === ">" ? tokens.slice(0, -1) : tokens
    return body.every((token) => filterToken.test(token)) && filter.length <= 200
      ? undefined
      : "must be event types such as invoice.paid, invoice.> or *.created"
  })
)

/** One, or several: most filters are those of one endpoint, and a Set for it takes 230 bytes. */
type Some<A> = A | Set<A>

const withOne = <A>(some: Some<A> | undefined, value: A): Some<A> => {
  if (some === undefined || some === value) return value
  return some instanceof Set ? some.add(value) : new Set([some, value])
}

const withoutOne = <A>(some: Some<A> | undefined, value: A): Some<A> | undefined => {
  if (!(some instanceof Set)) return some === value ? undefined : some
  some.delete(value)
  return some.size === 0 ? undefined : some
}

const addAll = <A>(some: Some<A> | undefined, to: Set<A>): void => {
  if (some instanceof Set) for (const value of some) to.add(value)
  else if (some !== undefined) to.add(some)
}

/** What is empty is left out: of many small trees it would be most of the memory. */
interface Node<A> {
  children?: Map<string, Node<A>>
  /** Those whose filter ends at this node. */
  here?: Some<A> | undefined
  /** Those whose filter ends in `>` below this node. */
  below?: Some<A> | undefined
}

/**
 * Which of many filters match a type, without looking at each: a tree of their tokens. Values are
 * told apart as a Set does, and are no Sets.
 * Cost of a look-up: the tokens of the type times the wildcards on the way, not the number of filters.
 */
export class TypeIndex<A> {
  readonly #root: Node<A> = {}

  /** Adds `value` under each filter. Filters must be valid. */
  add(filters: ReadonlyArray<string>, value: A): void {
    for (const filter of filters) {
      let node = this.#root
      let end: "here" | "below" = "here"
      for (const token of filter.split(".")) {
        if (token === ">") {
          end = "below"
          break
        }
        node = childOf(node, token)
      }
      node[end] = withOne(node[end], value)
    }
  }

  /** Takes back what `add` put there with the same filters. */
  remove(filters: ReadonlyArray<string>, value: A): void {
    for (const filter of filters) removeFrom(this.#root, filter.split("."), 0, value)
  }

  /**
   * The values whose filters match, each once however many of its filters do. Types of Petrel's own
   * events are matched by filters that name them, not by `>` or `*` alone.
   */
  match(type: string): Set<A> {
    const found = new Set<A>()
    const tokens = type.split(".")
    if (!isOwnType(type)) collect(this.#root, tokens, 0, found)
    else {
      const own = this.#root.children?.get(ownToken)
      if (own !== undefined) collect(own, tokens, 1, found)
    }
    return found
  }
}

const childOf = <A>(node: Node<A>, token: string): Node<A> => {
  node.children ??= new Map()
  const known = node.children.get(token)
  if (known !== undefined) return known
  const child: Node<A> = {}
  node.children.set(token, child)
  return child
}

const isEmpty = <A>({ below, children, here }: Node<A>): boolean =>
  (children?.size ?? 0) === 0 && here === undefined && below === undefined

const removeFrom = <A>(
  node: Node<A>,
  tokens: ReadonlyArray<string>,
  at: number,
  value: A
): void => {
  const token = tokens[at]
  if (token === undefined) node.here = withoutOne(node.here, value)
  else if (token === ">") node.below = withoutOne(node.below, value)
  else {
    const child = node.children?.get(token)
    if (child === undefined) return
    removeFrom(child, tokens, at + 1, value)
    if (isEmpty(child)) node.children?.delete(token)
  }
}

const collect = <A>(
  node: Node<A>,
  tokens: ReadonlyArray<string>,
  at: number,
  found: Set<A>
): void => {
  const token = tokens[at]
  if (token === undefined) {
    addAll(node.here, found)
    return
  }
  addAll(node.below, found)
  const exact = node.children?.get(token)
  if (exact !== undefined) collect(exact, tokens, at + 1, found)
  const any = node.children?.get("*")
  if (any !== undefined) collect(any, tokens, at + 1, found)
}
