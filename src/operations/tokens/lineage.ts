import { countText } from "../../text/quantities.ts"
import type { Asker } from "../caller.ts"
import type { AnyNewToken, TokenRecord, TokenScope, TokenView } from "./token.ts"
import { defaultTokenRate } from "./token.ts"

/** Tokens that are made with each other, at most: each request looks at all before its own. */
const maxLine = 8

/**
 * Returns the token that a token was made with, the one before that, and so on; undefined if one of
 * them is not there any more. What was made with a revoked token is revoked with it.
 *
 * @param get returns a token that is stored.
 */
export const lineOf = (
  { parent }: Pick<TokenView, "parent">,
  get: (id: string) => TokenRecord | undefined
): ReadonlyArray<TokenRecord> | undefined => {
  const line: Array<TokenRecord> = []
  for (let id = parent; id !== undefined; id = line.at(-1)?.parent) {
    const record = get(id)
    if (record === undefined || line.length > maxLine) return undefined
    line.push(record)
  }
  return line
}

/** Returns the tokens that were made with one, and with those, among all. */
export const madeWith = (
  id: string,
  all: ReadonlyArray<TokenRecord>
): ReadonlyArray<TokenRecord> => {
  const children = Map.groupBy(all, ({ parent }) => parent)
  const found = [...(children.get(id) ?? [])]
  // What is found is appended, and looked at in its turn.
  for (const { id: next } of found) found.push(...(children.get(next) ?? []))
  return found
}

const lacking = (wanted: ReadonlyArray<TokenScope>, own: ReadonlyArray<TokenScope>) =>
  wanted.filter((scope) => !own.includes(scope)).join(", ")

/** What a token makes: its settings, or why it may not. */
type Inherited = { readonly settings: AnyNewToken } | { readonly refusal: string }

/**
 * Returns the settings of a token that somebody makes: it can do no more than its maker and, if that
 * is a token, goes no faster and lasts no longer.
 *
 * @param before how many tokens that token was made with, one with the other.
 */
export const inherited = (
  asked: AnyNewToken,
  { scopes, token: maker }: Pick<Asker, "scopes" | "token">,
  before: number
): Inherited => {
  const lacks = lacking(asked.scopes, scopes)
  if (lacks !== "")
    return { refusal: `a token gives only scopes that it has itself, and not ${lacks}` }
  if (maker === undefined) return { settings: asked }
  if (before + 1 >= maxLine)
    return {
      refusal: `this token is the ${maxLine}th in a line of tokens that made each other, and makes none: use one before it`
    }
  const { rate: most = defaultTokenRate, endpoint, expiresAt: end } = maker
  const { rate = most, expiresAt = end } = asked
  if (rate > most)
    return {
      refusal: `a token gives no higher rate than its own, ${countText(most)} requests a second`
    }
  if (end !== undefined && (expiresAt === undefined || expiresAt > end))
    return {
      refusal: `a token makes none that outlives it: it expires at ${new Date(end).toISOString()}`
    }
  if (endpoint !== undefined && asked.endpoint !== endpoint)
    return {
      refusal: `this token is about the endpoint ${endpoint} alone, as must be what it makes`
    }
  return { settings: { ...asked, rate, ...(expiresAt === undefined ? {} : { expiresAt }) } }
}

/**
 * Returns why a token may not revoke another one, or undefined.
 *
 * @param line the tokens that it was made with.
 */
export const revocationRefusal = (
  { id, scopes }: TokenView,
  maker: TokenView,
  line: ReadonlyArray<TokenView>
): string | undefined => {
  if (line.some((one) => one.id === id))
    return `this token was made with ${id}, and does not revoke it`
  const lacks = lacking(scopes, maker.scopes)
  return lacks === "" ? undefined : `${id} has scopes that this token does not have: ${lacks}`
}
