import { AbortError } from '@temporalio/common/lib/errors.js';
