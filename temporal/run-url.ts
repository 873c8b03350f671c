/** Returns the address of a run in the Temporal UI; undefined without the UI's address. */
export const runUrl = (
  uiUrl: string | undefined,
  namespace: string,
  { runId, workflowId }: { readonly workflowId: string; readonly runId: string },
): string | undefined =>
  uiUrl === undefined
    ? undefined
    : `${uiUrl}/namespaces/${namespace}/workflows/${encodeURIComponent(workflowId)}/${runId}/history`;
