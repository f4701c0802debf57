import type { Store } from "petrel/receiver"

/** What the shop needs of a database. `Tx` is the transaction in which the receiver marks an event as done. */
export interface ShopDatabase<Tx> {
  readonly store: Store<Tx>
  readonly makeTables: () => Promise<void>
  /** Orders the parcel. It knows nothing of repeats: called twice, it orders two. */
  readonly ship: (tx: Tx, order: number) => Promise<void>
  /** The orders for which parcels were ordered, one entry for each parcel. */
  readonly shipments: () => Promise<ReadonlyArray<number>>
}
