/** Up to this share of the space, anybody may take what is free. */
const uncounted = 1 / 2

/**
 * How far all together may go beyond the space with whole shares, as a multiple of it: who comes late
 * has a share while others still hold more than theirs. Beyond it, what is left of a share is
 * `late`, so that nobody is shut out by others.
 */
const mostInAll = { whole: 3 / 2, late: 1 / 4 } as const
/**
 * The same for the endpoints of one tenant, as a multiple of its share. Beyond `most` a tenant takes
 * nothing, whichever endpoint it is for.
 */
const mostOfTenant = { whole: 5 / 4, late: 1 / 4, most: 3 / 2 } as const

/** Space that several share, bytes. */
export interface SharedSpace {
  /** What is taken. */
  readonly bytes: number
  /** What there is; undefined or -1 for no limit. */
  readonly maxBytes: number | undefined
}

/** What an endpoint takes of the space, and its tenant, bytes. */
interface SpaceUse {
  readonly endpointBytes: number
  readonly tenantBytes: number
  /** Number of endpoints of the tenant that take some, this one included. */
  readonly endpoints: number
  /** Number of tenants that take some, this one included. */
  readonly tenants: number
  /** True where there is no other tenant, for whom a part would have to be kept. */
  readonly isOnlyTenant?: boolean
}

/** True where shares count: more than half of the space is taken. */
export const isCrowded = ({ bytes, maxBytes }: SharedSpace): boolean =>
  maxBytes !== undefined && maxBytes >= 0 && bytes > maxBytes * uncounted

/**
 * Share of the space for a tenant that is alone there, and of its tenant's share for an endpoint that
 * is: the rest is kept for whoever comes next.
 */
const mostAlone = { tenant: 1 / 2, endpoint: 3 / 4 } as const

const shareOf = (maxBytes: number, sharers: number, alone: number): number =>
  maxBytes * Math.min(alone, 1 / sharers)

/**
 * Returns true where an endpoint may take no more of the space. Once more than half is taken, each
 * tenant has an equal share; and once a tenant takes more than half of its share, each of its
 * endpoints has an equal part of that. Nobody's share depends on how much others hold, only on how
 * many they are: an endpoint that comes late has its part, too, where others of its tenant hold more
 * than theirs.
 */
export const isOverQuota = (space: SharedSpace, use: SpaceUse): boolean => {
  const { bytes, maxBytes } = space
  if (maxBytes === undefined || !isCrowded(space)) return false
  const isSpaceLeft = bytes < maxBytes * mostInAll.whole
  const ofTenants = isSpaceLeft ? maxBytes : maxBytes * mostInAll.late
  const alone = use.isOnlyTenant === true ? 1 : mostAlone.tenant
  const tenantShare = shareOf(ofTenants, use.tenants, alone)
  const most = tenantShare * (isSpaceLeft ? mostOfTenant.most : 1)
  if (use.tenantBytes >= most) return true
  const left = use.tenantBytes < tenantShare * mostOfTenant.whole ? 1 : mostOfTenant.late
  const isTenantCrowded = use.tenantBytes > tenantShare * uncounted
  const share = shareOf(tenantShare * left, use.endpoints, mostAlone.endpoint)
  return isTenantCrowded && use.endpointBytes >= share
}

/** What the broker tells of a stream that endpoints share. */
interface CountedStream {
  readonly bytes: number
  readonly messages: number
  /** Messages by endpoint key. */
  readonly counts: ReadonlyMap<string, number>
}

/**
 * Estimates what each endpoint takes of a stream, bytes by endpoint key: the broker counts messages
 * by subject, but bytes by stream only. Messages of unknown size share what the others leave.
 *
 * @param sizeOf returns the usual size of an endpoint's messages where it is known, bytes.
 */
export const estimateBytes = (
  { bytes, counts, messages }: CountedStream,
  sizeOf: (key: string) => number | undefined = () => undefined
): ReadonlyMap<string, number> => {
  let sized = 0
  let unsized = messages
  for (const [key, count] of counts) {
    const size = sizeOf(key)
    if (size === undefined) continue
    sized += count * size
    unsized -= count
  }
  const usual = unsized > 0 ? Math.max(0, bytes - sized) / unsized : 0
  // Together they take what the stream has, whatever was usual before.
  const isTooLittle = unsized <= 0 && sized > 0
  const scale = isTooLittle || sized > bytes ? bytes / sized : 1
  const found = new Map<string, number>()
  for (const [key, count] of counts) {
    const size = sizeOf(key)
    found.set(key, count * (size === undefined ? usual : size * scale))
  }
  return found
}

/** The use of the dead-letter stream, in total and by tenant. */
export interface DeadLetterUse {
  readonly bytes: number
  /** The stream's size limit; -1 if there is none. */
  readonly maxBytes: number
  readonly messages: number
  /** Dead letters of each tenant that has any; undefined if the stream is not crowded. */
  readonly byTenant: ReadonlyMap<string, number> | undefined
}

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
