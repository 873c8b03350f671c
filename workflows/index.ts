export { sendHeartbeats } from './send-heartbeats.js';
export { applySecurityEvent } from './apply-security-event.js';
export { keepUsage } from './keep-usage.js';
export { removeOld } from './remove-old.js';
export { provisionAgent } from './provision-agent.js';
export { reconcileHost } from './reconcile-host.js';
export { repairAgent } from './repair-agent.js';
export { superviseAgent } from './supervise-agent.js';
