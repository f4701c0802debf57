import { Context, Effect, Schema } from "effect"
import type { TokenScope, TokenView } from "./token.ts"
import { scopes } from "./token.ts"

/** Who asks for something: their name for the history, and what they may. */
export interface Asker {
  readonly by: string
  readonly scopes: ReadonlyArray<TokenScope>
  /** Absent where something else than a token has authorised them. */
  readonly token?: TokenView | undefined
}

/** Whoever has a connection of an operator to the broker may see and do everything there. */
export const operatorNamed = (by: string): Asker => ({ by, scopes })

/** Who asks for an operation, and what they may. */
export class Caller extends Context.Service<
  Caller,
  {
    /** Undefined where the broker has authorised it. */
    readonly token: TokenView | undefined
    /** The tenant of its token, `*` for all. */
    readonly tenant: string
    readonly scopes: ReadonlyArray<TokenScope>
    /** Who asks, as the history records it. */
    readonly by: string
    /** The one endpoint of the tenant that there is for them; undefined: all. */
    readonly endpoint?: string | undefined
    /** False once the token was revoked or has expired. */
    readonly isValid: () => boolean
  }
>()("petrel/operations/Caller") {}

/** Carries out what the history records a name for. */
export const asCaller = <A, E, R>(run: (by: string) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Caller, ({ by }) => run(by))

/** True for who may see what receivers answered: it may repeat what they were sent. */
export const maySeeAnswers = ({ scopes }: Pick<Asker, "scopes">): boolean =>
  scopes.includes("payloads:read")

/**
 * Removes from the record of an attempt what its receiver said, and where it led to. Messages of
 * errors have nothing of it (`endpoints/target.ts`).
 */
export const withoutAnswer = <A extends object>(
  record: A & { readonly redirects?: unknown; readonly response?: unknown }
) => {
  const { redirects: _, response: __, ...rest } = record
  return rest
}

/** A bound is reached: the same may be asked for again later. The message says what to do. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", {
  message: Schema.String,
  /** Seconds until it is worth trying again. */
  retryAfter: Schema.Int
}) {}

/** The caller may use the operation, and not for this. */
export class NotAllowed extends Schema.TaggedError<NotAllowed>()("NotAllowed", {
  message: Schema.String
}) {}
