from django.urls import include, path

urlpatterns = [path("", include("evaluations.api.urls")), path("", include("evaluations.web.urls"))]

handler400 = "evaluations.web.errors.bad_request"
handler403 = "evaluations.web.errors.forbidden"
handler404 = "evaluations.web.errors.not_found"
handler500 = "evaluations.web.errors.server_error"
