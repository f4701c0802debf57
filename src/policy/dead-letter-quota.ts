/** The use of the dead-letter stream, in total and by tenant. */
export interface DeadLetterUse {
  readonly bytes: number
  /** The stream's size limit; -1 if there is none. */
  readonly maxBytes: number
  readonly messages: number
  /** Dead letters of each tenant that has any; undefined if the stream is not crowded. */
  readonly byTenant: ReadonlyMap<string, number> | undefined
}

/** Up to this share of the stream no tenant's quota applies. */
const uncounted = 1 / 2

/** Returns true if quotas apply. */
export const isCrowded = ({ bytes, maxBytes }: Pick<DeadLetterUse, "bytes" | "maxBytes">) =>
  maxBytes > 0 && bytes > maxBytes * uncounted

/**
 * Returns how many dead letters the tenant may have: an equal share of the stream's capacity, at
 * the current average message size. Returns undefined if no quota applies, because the stream is at
 * most half full or one tenant has all dead letters.
 *
 * @param tenant the tenant that is about to get one more.
 */
export const deadLetterQuota = (use: DeadLetterUse, tenant: string): number | undefined => {
  const { byTenant, bytes, maxBytes, messages } = use
  if (!isCrowded(use) || byTenant === undefined) return undefined
  const tenants = byTenant.has(tenant) ? byTenant.size : byTenant.size + 1
  if (tenants < 2) return undefined
  return Math.max(1, Math.floor((messages * (maxBytes / bytes)) / tenants))
}
