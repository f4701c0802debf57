import { Context } from "effect"
import type { TokenScope } from "../operations/tokens/token.ts"

/** Who asks without a token, because something else has authorised the request. */
export interface InsiderRecord {
  readonly tenant: string
  readonly scopes: ReadonlyArray<TokenScope>
  /** Who asks, as the history records it. */
  readonly by: string
}

/** The insider that a request is from; undefined for requests that came over HTTP. */
export const Insider = Context.Reference<InsiderRecord | undefined>("petrel/api/Insider", {
  defaultValue: () => undefined
})
