export { provisionAgent } from './provision-agent.js';
export { superviseAgent } from './supervise-agent.js';
