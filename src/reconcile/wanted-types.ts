const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")

/**
 * Returns what says whether a provider's type is of a list of patterns, in which `*` stands for any
 * characters: `invoice.*`, `orders/*`. A type that is not known is wanted: nothing is left out
 * unseen.
 */
export const wantedTypes = (
  patterns: ReadonlyArray<string> | undefined
): ((type: string | undefined) => boolean) => {
  if (patterns === undefined || patterns.includes("*")) return () => true
  const whole = new RegExp(
    `^(?:${patterns.map((pattern) => pattern.split("*").map(escaped).join(".*")).join("|")})$`,
    "s"
  )
  return (type) => type === undefined || whole.test(type)
}
