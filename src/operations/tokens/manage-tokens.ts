import { Clock, Effect } from "effect"
import type { Problem } from "../../domain/problem.ts"
import { Invalid } from "../../domain/problem.ts"
import type { Asker } from "../caller.ts"
import { NotAllowed } from "../caller.ts"
import { quotaOf, quotaReached } from "../quota.ts"
import { TokenNotFound } from "../refusals.ts"
import type { AnyNewToken, CreatedToken, RevokedToken, TokenRecord, TokenView } from "../token.ts"
import { allTenants, generateToken, hasExpired, isTokenId, tokenView } from "../token.ts"
import {
  appendTokenFact,
  eraseToken,
  inherited,
  LiveTokens,
  lineOf,
  madeWith,
  readToken,
  readTokens,
  revocationRefusal,
  storeToken
} from "./token-store.ts"

const problemsOf = (
  { expiresAt, scopes, tenant }: AnyNewToken,
  now: number
): ReadonlyArray<Problem> => [
  ...(scopes.includes("operator") && tenant !== allTenants
    ? [{ field: "scopes", message: "has operator, which only a token of all tenants (`*`) can be" }]
    : []),
  ...(expiresAt !== undefined && expiresAt <= now
    ? [{ field: "expiresAt", message: "is in the past: the token would never be valid" }]
    : [])
]

/** True for a token that no request passes with any more. */
const isOver = (record: TokenRecord, now: number, get: (id: string) => TokenRecord | undefined) =>
  hasExpired(record, now) || lineOf(record, get) === undefined

type Places = Pick<TokenView, "id" | "tenant" | "use">

/** The name of the places that a token takes one of: browsers take none from programs. */
const placesOf = ({ tenant, use }: Places): string =>
  use === undefined ? tenant : `${tenant} browsers`

/**
 * Takes a place for a token among those of its tenant. What is over gives its place. Links and
 * sessions of browsers have as many places of their own.
 */
const reserve = Effect.fnUntraced(function* (token: Places, now: number) {
  const { id, tenant } = token
  const { get, of, reservations } = yield* LiveTokens
  const most = yield* quotaOf(tenant, "maxTokens")
  const places = placesOf(token)
  const all = of(tenant).filter((one) => placesOf(one) === places)
  const over = all.length < most ? [] : all.filter((one) => isOver(one, now, get))
  const isKept = (id: string) => get(id) !== undefined
  if (!reservations.take(places, id, most, all.length - over.length, isKept))
    return yield* quotaReached(tenant, "maxTokens", most, token.use !== undefined)
  yield* Effect.forEach(over, (one) => eraseToken(one.id), { discard: true, concurrency: 8 })
})

/**
 * Makes a token and stores what proves it. The token itself is in the answer only, and only if the
 * history knows of it. Fails with
 * NotAllowed for what the asker's own token may not give, with QuotaReached if there are as many as
 * there may be.
 *
 * @param at when it is made, ms since the epoch. (Default: by this machine's clock)
 */
export const createToken = Effect.fnUntraced(function* (
  asked: AnyNewToken,
  asker: Asker,
  at?: number
) {
  const now = at ?? (yield* Clock.currentTimeMillis)
  const { get, reservations } = yield* LiveTokens
  const { by, token: maker } = asker
  const line = maker === undefined ? [] : lineOf(maker, get)
  const made = inherited(asked, asker, line?.length ?? 0)
  if ("refusal" in made) return yield* new NotAllowed({ message: made.refusal })
  const problems = problemsOf(made.settings, now)
  if (problems.length > 0) return yield* new Invalid({ problems })
  const { hash, id, token } = yield* generateToken()
  const parent = maker === undefined ? {} : { parent: maker.id }
  const shown: TokenView = { id, ...made.settings, createdAt: now, by, ...parent }
  yield* reserve(shown, now)
  const isPlain = shown.use === undefined && shown.endpoint === undefined
  yield* storeToken({ v: isPlain ? 1 : 2, ...shown, hash }).pipe(
    Effect.andThen(appendTokenFact("token-created", shown, by)),
    Effect.onError(() => {
      reservations.give(placesOf(shown), id)
      return Effect.ignore(eraseToken(id))
    })
  )
  return { ...shown, token } satisfies CreatedToken
})

/**
 * Lists tokens, oldest first, without those that were made with a revoked one.
 *
 * @param tenant only those of this tenant; `*` for those that hold for all. (Default: all there are)
 */
export const listTokens = (tenant?: string) =>
  Effect.map(readTokens, (all) => {
    const byId = new Map(all.map((one) => [one.id, one]))
    return all
      .filter((one) => tenant === undefined || one.tenant === tenant)
      .filter((one) => lineOf(one, (id) => byId.get(id)) !== undefined)
      .map(tokenView)
  })

/**
 * Revokes a token and all that were made with it: they are refused from then on. Fails with
 * TokenNotFound, or with NotAllowed for one that the asker's own token may not revoke.
 *
 * @param tenant only if it is of this tenant.
 */
export const revokeToken = Effect.fnUntraced(function* (
  id: string,
  { by, token: maker }: Pick<Asker, "by" | "token">,
  tenant?: string
) {
  const record = isTokenId(id) ? yield* readToken(id) : undefined
  if (record === undefined || (tenant !== undefined && record.tenant !== tenant))
    return yield* new TokenNotFound({ id })
  const { all, get } = yield* LiveTokens
  if (maker !== undefined) {
    const refusal = revocationRefusal(record, maker, lineOf(maker, get) ?? [])
    if (refusal !== undefined) return yield* new NotAllowed({ message: refusal })
  }
  // Without it, none of the others is valid, whatever happens in between.
  yield* eraseToken(id)
  const others = madeWith(id, all())
  yield* Effect.forEach(others, (one) => eraseToken(one.id), { discard: true, concurrency: 8 })
  // A token is refused also where the history takes nothing: the log says what it lacks then.
  yield* Effect.forEach(
    [record, ...others],
    (one) =>
      appendTokenFact(
        "token-revoked",
        tokenView(one),
        by,
        one === record ? undefined : `with ${id}`
      ),
    { discard: true, concurrency: 8 }
  ).pipe(
    Effect.catch(({ message }) =>
      Effect.logWarning("the history has no fact of a revocation", { token: id, by, message })
    )
  )
  return { ...tokenView(record), with: others.map((one) => one.id) } satisfies RevokedToken
})
