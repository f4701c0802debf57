import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { Answered, Command, Pager, Rows } from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"

const valueText = (value: unknown): string =>
  value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value)

/** What tells two endpoints of a name apart is nobody's setting. */
const isSetting = ({ setting }: { readonly setting: string }): boolean => setting !== "generation"

/** Who has changed an endpoint, and what, newest first. */
export const EndpointHistory = ({
  id,
  tenant
}: {
  readonly id: string
  readonly tenant: string
}) => {
  const { cursor } = query.value
  const asked = useAsked(`history ${tenant}/${id} ${cursor}`, (options) =>
    petrel.endpoints.history({ tenant, id, limit: 50 }, options).page(cursor)
  )
  return (
    <>
      <div class="title">
        <h1>
          <a href={address(["endpoints", tenant, id])}>
            {tenant}/{id}
          </a>
        </h1>
        <span class="small">changes, newest first</span>
      </div>
      <Answered asked={asked}>
        {(page) => (
          <>
            <Rows
              items={page.changes}
              keyOf={({ revision }) => revision}
              empty="The history reaches back to none."
              head={
                <>
                  <th class="n">Revision</th>
                  <th>Change</th>
                  <th>What</th>
                  <th class="hide-s">By</th>
                  <th class="n">When</th>
                </>
              }
              row={(one) => (
                <>
                  <td class="n">{one.revision}</td>
                  <td>{one.change}</td>
                  <td class="wrap">
                    {one.differences.length === 0 && "–"}
                    {one.differences.filter(isSetting).map(({ from, setting, to }) => (
                      <div key={setting}>
                        <b>{setting}</b>{" "}
                        {one.change === "added"
                          ? valueText(to)
                          : `${valueText(from)} → ${valueText(to)}`}
                      </div>
                    ))}
                  </td>
                  <td class="hide-s">{one.by ?? "–"}</td>
                  <td class="n">
                    <Ago at={one.at} />
                  </td>
                </>
              )}
            />
            <Pager cursors={page} show={(to) => filter({ cursor: to })} />
          </>
        )}
      </Answered>
      <Command
        text={`petrel endpoint show ${tenant}/${id} --history`}
        request={curlCommand(`/v1/tenants/${tenant}/endpoints/${id}/history`)}
      />
    </>
  )
}
