import { Effect, Schema } from "effect"
import type { QuotaName } from "../../domain/settings/tenant-table.ts"
import { defaultQuotas } from "../../domain/settings/tenant-table.ts"
import { systemKey } from "../../domain/tenant-settings.ts"
import { isToken } from "../../domain/token.ts"
import { readSettingsInForce } from "../../endpoints/settings-store.ts"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import { plural } from "../text/number-format.ts"

const texts: Readonly<Record<QuotaName, readonly [what: string, flag: string]>> = {
  maxEndpoints: ["endpoint", "--max-endpoints"],
  maxTokens: ["token", "--max-tokens"]
}

/** A tenant has as many of something as it may have. */
export class QuotaReached extends Schema.TaggedError<QuotaReached>()("QuotaReached", {
  tenant: Schema.String,
  quota: Schema.Literals(["maxEndpoints", "maxTokens"]),
  most: Schema.Int
}) {
  override get message() {
    const [what, flag] = texts[this.quota]
    const [whose, name] = isToken(this.tenant)
      ? [this.tenant, this.tenant]
      : ["what is of all tenants", "--system"]
    return `${whose} has ${plural(this.most, what)}, as many as it may have: remove some, or let an operator raise that (\`petrel tenant set ${name} ${flag} N\`)`
  }
}

/** Reads how many of something a tenant may have: what is set for it, or for the system, or by default. */
export const quotaOf = Effect.fnUntraced(function* (tenant: string, quota: QuotaName) {
  // All tenants together have no settings of their own.
  const { system, tenant: own } = yield* readSettingsInForce(isToken(tenant) ? tenant : systemKey)
  return own?.[quota] ?? system?.[quota] ?? defaultQuotas[quota]
})

/** Refuses one more, and counts that. */
export const quotaReached = (tenant: string, quota: QuotaName, most: number) =>
  Effect.flatMap(RefusedRequests, (refused) => {
    refused.note(quota)
    return Effect.fail(new QuotaReached({ tenant, quota, most }))
  })
