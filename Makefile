# `make run` and `make test` are all that is needed day to day. Both work from nothing.
.PHONY: run test test-faults test-security lint format dev worker screenshots

BIN := .venv/bin
SETTINGS := DJANGO_SETTINGS_MODULE=judgeweb.settings
DJHTML := --tabwidth 2 --extra-block table_notes,endtable_notes --extra-block empty_part,endempty_part

run: # the whole product: web server, worker, periodic tasks; PORT=8001 chooses a port
	@bin/venv requirements.txt
	@exec $(BIN)/python -m judgeweb.serving

dev: # the same, with debug pages, starting again when a source file changes
	@bin/venv requirements.txt
	@exec env JUDGEWEB_DEBUG=1 $(BIN)/python -m judgeweb.serving --reload

worker: # one more worker beside `make run`
	@bin/venv requirements.txt
	@exec $(BIN)/celery --app judgeweb worker --loglevel WARNING --hostname "extra-$$$$@%h"

test: # the whole suite; ARGS="-k import" chooses
	@bin/venv requirements-dev.txt
	@$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-faults: # kills, cuts, full disks: the table in docs/faults.md; ARGS="-k redis" chooses
	@bin/venv requirements-dev.txt
	@$(BIN)/pytest tests/faults $(ARGS)

SECURITY := tests/security tests/web tests/test_access.py tests/test_blindness.py tests/test_visibility.py tests/conformance \
	tests/api tests/members tests/net tests/rendering tests/browser/test_hostile_texts.py \
	tests/serving/test_web_server.py tests/serving/test_body_admission.py tests/serving/test_file_modes.py \
	tests/judges/test_endpoint_grants.py tests/judges/test_endpoint_budgets.py \
	tests/judges/test_endpoint_check_spending.py tests/judges/test_pasted_keys.py tests/llm/test_request_extras.py \
	tests/backups
test-security: # every address, method and role; hostile texts, files, addresses and connections; grants, keys and budgets
	@bin/venv requirements-dev.txt
	@$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(SECURITY) $(ARGS)

lint:
	@bin/venv requirements-dev.txt
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/djhtml --check $(DJHTML) templates
	@$(SETTINGS) $(BIN)/mypy

format:
	@bin/venv requirements-dev.txt
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/djhtml $(DJHTML) templates

screenshots: # docs/screenshots, from the running product with its example
	@bin/venv requirements-dev.txt
	@$(BIN)/python -m benchmarks.screenshots
