import { installModules } from './bootstrap.mjs';

installModules(process.argv[2]);
