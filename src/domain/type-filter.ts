import { Schema } from "effect"

const filterToken = /^(\*|[A-Za-z0-9_-]{1,64})$/
const typeToken = /^[A-Za-z0-9_-]{1,64}$/

/** What is wrong with an event type (`invoice.paid`), or undefined. */
export const eventTypeProblem = (type: string): string | undefined => {
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

interface Node<A> {
  readonly children: Map<string, Node<A>>
  /** Those whose filter ends at this node. */
  readonly here: Map<string, A>
  /** Those whose filter ends in `>` below this node. */
  readonly below: Map<string, A>
}
const makeNode = <A>(): Node<A> => ({ children: new Map(), here: new Map(), below: new Map() })

/**
 * Which of many filters match a type, without looking at each: a tree of their tokens.
 * Cost of a look-up: the tokens of the type times the wildcards on the way, not the number of filters.
 */
export class TypeIndex<A> {
  readonly #root = makeNode<A>()

  /** Adds `value` under `key` for each filter. Filters must be valid. */
  add(key: string, filters: ReadonlyArray<string>, value: A): void {
    for (const filter of filters) {
      let node = this.#root
      let map: "here" | "below" = "here"
      for (const token of filter.split(".")) {
        if (token === ">") {
          map = "below"
          break
        }
        let child = node.children.get(token)
        if (child === undefined) {
          child = makeNode()
          node.children.set(token, child)
        }
        node = child
      }
      node[map].set(key, value)
    }
  }

  /** Takes back what `add` put there with the same key and filters. */
  remove(key: string, filters: ReadonlyArray<string>): void {
    for (const filter of filters) this.#removeFrom(this.#root, key, filter.split("."), 0)
  }

  /** The values whose filters match, each once however many of its filters do. */
  match(type: string): Map<string, A> {
    const found = new Map<string, A>()
    collect(this.#root, type.split("."), 0, found)
    return found
  }

  #removeFrom(node: Node<A>, key: string, tokens: ReadonlyArray<string>, at: number): void {
    const token = tokens[at]
    if (token === undefined) node.here.delete(key)
    else if (token === ">") node.below.delete(key)
    else {
      const child = node.children.get(token)
      if (child === undefined) return
      this.#removeFrom(child, key, tokens, at + 1)
      if (child.children.size + child.here.size + child.below.size === 0)
        node.children.delete(token)
    }
  }
}

const collect = <A>(
  node: Node<A>,
  tokens: ReadonlyArray<string>,
  at: number,
  found: Map<string, A>
): void => {
  const token = tokens[at]
  if (token === undefined) {
    for (const [key, value] of node.here) found.set(key, value)
    return
  }
  for (const [key, value] of node.below) found.set(key, value)
  const exact = node.children.get(token)
  if (exact !== undefined) collect(exact, tokens, at + 1, found)
  const any = node.children.get("*")
  if (any !== undefined) collect(any, tokens, at + 1, found)
}
