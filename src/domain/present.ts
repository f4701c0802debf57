/** Fields of which each may be absent. */
type Present<A> = { readonly [K in keyof A]?: Exclude<A[K], undefined> }

/** Returns the fields that have a value: an optional key is absent where there is none. */
export const present = <A extends object>(fields: A): Present<A> =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined)
  ) as Present<A>
