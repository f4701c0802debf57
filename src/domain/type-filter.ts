import { Schema } from "effect"
import { isOwnType, ownToken } from "./token-rules.ts"

export { eventTypeProblem, isOwnType, ownTypeProblem } from "./token-rules.ts"

const filterToken = "(?:\\*|[A-Za-z0-9_-]{1,64})"
/** The pattern of filters, as JSON Schema has it, and their longest length, characters. */
const filterPattern = `^(?:>|${filterToken}(?:\\.${filterToken})*(?:\\.>)?)$`
const maxFilterLength = 200
const isFilter = new RegExp(filterPattern)

const isWildcard = (token: string | undefined): boolean => token === "*" || token === ">"

/**
 * Returns an event type that both filters match, with `x` for tokens that neither of them names;
 * undefined if there is none.
 */
export const commonType = (one: string, other: string): string | undefined => {
  const [a, b] = [one.split("."), other.split(".")]
  const tokens: Array<string> = []
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const [first, second] = [a[at] ?? restOf(a), b[at] ?? restOf(b)]
    if (first === undefined || second === undefined) return undefined
    if (!isWildcard(first) && !isWildcard(second) && first !== second) return undefined
    const named = [first, second].find((token) => !isWildcard(token))
    // Only filters that name Petrel's own events match them.
    if (at === 0 && named === ownToken && first !== second) return undefined
    tokens.push(named ?? "x")
  }
  return tokens.join(".")
}

/** Returns the wildcard for the tokens after a filter's last one; undefined if it matches none. */
const restOf = (tokens: ReadonlyArray<string>): string | undefined =>
  tokens.at(-1) === ">" ? ">" : undefined

/** Returns the type of the events of an alert. With `>`, a filter for all alerts. */
export const alertType = (name: string): string => `${ownToken}.alert.${name}`

/** Returns why a text is no {@link TypeFilter}, or undefined. */
export const typeFilterProblem = (filter: string): string | undefined =>
  filter.length <= maxFilterLength && isFilter.test(filter)
    ? undefined
    : "must be event types such as invoice.paid, invoice.> or *.created"

/**
 * Event types as a NATS wildcard: dot-separated tokens, `*` for one token, a last `>` for the rest.
 */
export const TypeFilter = Schema.String.check(
  Schema.makeFilter(typeFilterProblem, {
    toJsonSchema: () => ({ pattern: filterPattern, maxLength: maxFilterLength })
  })
)

/**
 * One value or several. Most filters belong to one endpoint, and a Set for one value takes 230
 * bytes.
 */
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

type End = "here" | "below"

/** Empty fields are left out: in many small trees they would take most of the memory. */
interface FilterNode<A> {
  /** The tokens between the parent node and this one. No other filter branches off within them. */
  readonly run: ReadonlyArray<string>
  /** Children by the first token of their run. */
  children?: Map<string, FilterNode<A>>
  /** Values whose filter ends at this node. */
  here?: Some<A> | undefined
  /** Values whose filter ends in `>` below this node. */
  below?: Some<A> | undefined
}

/**
 * Finds the filters that match a type through a tree of tokens, without testing each filter. Values
 * are compared as in a Set, and must not be Sets themselves. A lookup visits at most two nodes for
 * each filter that begins like the type, and each of their tokens once.
 */
export class TypeIndex<A> {
  readonly #root: FilterNode<A> = { run: [] }

  /** Adds `value` under each filter. Filters must be valid. */
  add(filters: ReadonlyArray<string>, value: A): void {
    for (const filter of filters) {
      const { end, tokens } = parted(filter)
      const node = nodeAt(this.#root, tokens)
      node[end] = withOne(node[end], value)
    }
  }

  /** Removes `value` from the filters that it was added under. */
  remove(filters: ReadonlyArray<string>, value: A): void {
    for (const filter of filters) {
      const { end, tokens } = parted(filter)
      removeFrom(this.#root, tokens, end, value)
    }
  }

  /**
   * Returns the values whose filters match, each once. Petrel's own event types match only filters
   * that name them, not `>` or `*` alone.
   */
  match(type: string): Set<A> {
    const found = new Set<A>()
    const tokens = type.split(".")
    if (isOwnType(type)) collectBelow(this.#root, ownToken, tokens, 0, found)
    else collect(this.#root, tokens, 0, found)
    return found
  }
}

const parted = (filter: string): { readonly tokens: ReadonlyArray<string>; readonly end: End } => {
  const tokens = filter.split(".")
  return tokens.at(-1) === ">"
    ? { tokens: tokens.slice(0, -1), end: "below" }
    : { tokens, end: "here" }
}

/** Returns the length of the common prefix. */
const shared = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): number => {
  const differs = one.findIndex((token, index) => token !== other[index])
  return differs < 0 ? one.length : differs
}

/** Returns the node below `node` at which the tokens end. Creates it if missing. */
const nodeAt = <A>(node: FilterNode<A>, tokens: ReadonlyArray<string>): FilterNode<A> => {
  const [first] = tokens
  if (first === undefined) return node
  node.children ??= new Map()
  const child = node.children.get(first)
  const same = child === undefined ? 0 : shared(child.run, tokens)
  if (child !== undefined && same === child.run.length) return nodeAt(child, tokens.slice(same))
  const made: FilterNode<A> = { run: child === undefined ? tokens : tokens.slice(0, same) }
  node.children.set(first, made)
  if (child === undefined) return made
  const rest = child.run.slice(same)
  made.children = new Map([[rest[0] ?? "", { ...child, run: rest }]])
  return nodeAt(made, tokens.slice(same))
}

const removeFrom = <A>(
  node: FilterNode<A>,
  tokens: ReadonlyArray<string>,
  end: End,
  value: A
): void => {
  const [first] = tokens
  if (first === undefined) {
    node[end] = withoutOne(node[end], value)
    return
  }
  const child = node.children?.get(first)
  if (child === undefined || shared(child.run, tokens) < child.run.length) return
  removeFrom(child, tokens.slice(child.run.length), end, value)
  if (child.here !== undefined || child.below !== undefined) return
  const [only, another] = child.children?.values() ?? []
  if (only === undefined) node.children?.delete(first)
  else if (another === undefined)
    node.children?.set(first, { ...only, run: [...child.run, ...only.run] })
}

/** @param at number of the type's tokens consumed on the way to this node. */
const collect = <A>(
  node: FilterNode<A>,
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
  if (node.children === undefined) return
  collectBelow(node, token, tokens, at, found)
  collectBelow(node, "*", tokens, at, found)
}

/** Continues {@link collect} in the child whose run begins with `first`. */
const collectBelow = <A>(
  node: FilterNode<A>,
  first: string,
  tokens: ReadonlyArray<string>,
  at: number,
  found: Set<A>
): void => {
  const child = node.children?.get(first)
  if (child !== undefined && fits(child.run, tokens, at))
    collect(child, tokens, at + child.run.length, found)
}

const fits = (run: ReadonlyArray<string>, tokens: ReadonlyArray<string>, at: number): boolean => {
  if (at + run.length > tokens.length) return false
  for (let index = 0; index < run.length; index++)
    if (run[index] !== "*" && run[index] !== tokens[at + index]) return false
  return true
}
