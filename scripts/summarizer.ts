// Runs only the web summarizer, without database, Temporal and Docker: npm run summarizer
import { onNpmEnd } from '../dev/processes/npm-end.js';

onNpmEnd(() => process.kill(process.pid, 'SIGTERM'));
await import('../api/summarizer/main.js');
