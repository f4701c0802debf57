/** How full the stream of dead letters is, and with whose. */
export interface DeadLetterUse {
  readonly bytes: number
  /** What it takes at most; -1 where there is no limit. */
  readonly maxBytes: number
  readonly messages: number
  /** Dead letters of each tenant that has some; undefined while nobody need know. */
  readonly byTenant: ReadonlyMap<string, number> | undefined
}

/** The part of the stream up to which nobody's part of it is counted. */
const uncounted = 1 / 2

/** True where it matters whose dead letters they are. */
export const isCrowded = ({ bytes, maxBytes }: Pick<DeadLetterUse, "bytes" | "maxBytes">) =>
  maxBytes > 0 && bytes > maxBytes * uncounted

/**
 * How many dead letters each tenant may have, where that is limited: an equal part of what the stream
 * takes, by the size that its messages have now. Undefined where it is not: the stream is at most half
 * full, or one tenant has them all.
 *
 * @param tenant who is about to have one more.
 */
export const deadLetterQuota = (use: DeadLetterUse, tenant: string): number | undefined => {
  const { byTenant, bytes, maxBytes, messages } = use
  if (!isCrowded(use) || byTenant === undefined) return undefined
  const tenants = byTenant.has(tenant) ? byTenant.size : byTenant.size + 1
  if (tenants < 2) return undefined
  return Math.max(1, Math.floor((messages * (maxBytes / bytes)) / tenants))
}
